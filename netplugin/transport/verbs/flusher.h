// Makes what one link has placed in a GPU's memory seen by the GPU: reads there by the link's device, in order. Its queue pair is made with
// the first of them, so that jobs in host memory have none.
//
// The lock holder's. What blocks runs in the device's control thread, which holds what it needs by itself.
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
  // Nothing is told of what is outstanding.
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
  // What the control thread makes. `made` says that the rest may be read.
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
