// Makes the data that one link has placed in GPU memory visible to the GPU, by reads of the link's device there, in order. Its queue pair
// is made with the first flush, so that jobs in host memory have none.
//
// Used by the holder of the lock. Calls that block run in the device's control thread, whose jobs own all that they need.
#ifndef R2CC_NETPLUGIN_TRANSPORT_VERBS_FLUSHER_H_
#define R2CC_NETPLUGIN_TRANSPORT_VERBS_FLUSHER_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "netplugin/config/log.h"
#include "netplugin/transport/links.h"
#include "netplugin/transport/verbs/loopback_pair.h"

namespace r2cc::net::verbs {

class Flusher {
 public:
  Flusher(std::shared_ptr<Domain> domain, const LoopbackPair::Options& options, std::function<void(LogLevel, const std::string&)> log)
      : domain_(std::move(domain)), options_(options), log_(std::move(log)) {}
  // Outstanding flushes are not reported.
  ~Flusher();
  Flusher(const Flusher&) = delete;
  Flusher& operator=(const Flusher&) = delete;

  // `at` lies in a region of the domain with that key.
  void Flush(const FlushName& name, const void* at, uint32_t remote_key);
  // Calls `done` for each that has ended, in order. False: the device does not do it, and what is outstanding never ends.
  bool Poll(const std::function<void(const FlushName&)>& done);
  bool outstanding() const { return !waiting_.empty() || !posted_.empty(); }

 private:
  struct Wanted {
    FlushName name;
    const void* at = nullptr;
    uint32_t remote_key = 0;
  };
  // What the control thread makes. The other fields may be read when `made` is true.
  struct Making {
    std::unique_ptr<LoopbackPair> pair;  // null: it failed
    std::atomic<bool> made{false};
  };

  const std::shared_ptr<Domain> domain_;
  const LoopbackPair::Options options_;
  const std::function<void(LogLevel, const std::string&)> log_;
  std::shared_ptr<Making> making_;
  std::deque<Wanted> waiting_;
  std::deque<FlushName> posted_;
};

}  // namespace r2cc::net::verbs

#endif  // R2CC_NETPLUGIN_TRANSPORT_VERBS_FLUSHER_H_
