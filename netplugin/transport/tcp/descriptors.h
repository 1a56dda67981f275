// Checks whether this process may open more sockets, and words the error if it may not.
#ifndef R2CC_NETPLUGIN_TRANSPORT_TCP_DESCRIPTORS_H_
#define R2CC_NETPLUGIN_TRANSPORT_TCP_DESCRIPTORS_H_

#include <atomic>
#include <cstdint>
#include <string>

#include "base/core/clock.h"
#include "netplugin/config/log.h"

namespace r2cc::net {

// How many descriptors this process may have open.
uint64_t DescriptorsMost();

// Raises the limit to the hard limit, as NCCL does: each peer takes some descriptors for each rail.
void RaiseDescriptorsMost();

// The line for a call that failed with `failure`, an errno, where `most` may be open; empty if the cause is not a lack of descriptors.
// Pure.
std::string OutOfDescriptors(int failure, uint64_t most);

// Any thread.
class DescriptorWatch {
 public:
  DescriptorWatch(const Clock* clock, LogFn log) : clock_(clock), log_(std::move(log)) {}

  // A call for a descriptor failed with `failure`, an errno. Warns if there are none left; the log drops repetitions.
  void Failed(int failure);
  // What recently kept this process from opening descriptors; empty: nothing.
  std::string Trouble() const;

 private:
  const Clock* const clock_;
  const LogFn log_;
  std::atomic<int> failure_{0};
  std::atomic<Nanos> failed_{0};
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_TCP_DESCRIPTORS_H_
