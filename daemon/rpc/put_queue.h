// Keeps the entries that this node wants in a store, and which of them the store lacks.
#ifndef R2CC_DAEMON_RPC_PUT_QUEUE_H_
#define R2CC_DAEMON_RPC_PUT_QUEUE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "base/executor.h"

namespace r2cc::daemon {

// One put of a key at a time, since two under way could arrive in either order; the newest value of a key wins. The core's thread only.
class PutQueue {
 public:
  // Sends a put. `done` is to be called once, on the core's thread: does the store have it? It may be called from within.
  using Send = std::function<void(const std::string& key, const std::string& value, int64_t lease_ms, std::function<void(bool ok)> done)>;

  // `executor` outlives the queue.
  PutQueue(const Executor* executor, Send send) : executor_(executor), send_(std::move(send)) {}

  void Put(const std::string& key, const std::string& value, int64_t lease_ms) {
    Entry& entry = entries_[key];
    entry.value = value;
    entry.lease_ms = lease_ms;
    entry.dirty = true;
    PutNow(key, &entry);
  }

  // The store's memory may be a new one.
  void PutAllAgain() {
    for (auto& [key, entry] : entries_) {
      entry.dirty = true;
      PutNow(key, &entry);
    }
  }

  // Puts what the store does not have; with `renew_leases` also what it would forget within two thirds of its lease.
  void Retry(bool renew_leases) {
    for (auto& [key, entry] : entries_) {
      const bool wanes = renew_leases && entry.lease_ms > 0 && executor_->Now() - entry.put_at >= entry.lease_ms * kNanosPerMs / 3;
      if (entry.dirty || wanes) PutNow(key, &entry);
    }
  }

 private:
  struct Entry {
    std::string value;
    int64_t lease_ms = 0;
    bool dirty = true;       // the store does not have this value yet
    bool under_way = false;  // a put of this key has not been answered
    Nanos put_at = 0;
  };

  void PutNow(const std::string& key, Entry* entry) {
    if (entry->under_way) return;
    entry->under_way = true;
    entry->dirty = false;
    entry->put_at = executor_->Now();
    send_(key, entry->value, entry->lease_ms, [this, key, entry](bool ok) {
      entry->under_way = false;
      if (!ok)
        entry->dirty = true;  // Retry comes
      else if (entry->dirty)
        PutNow(key, entry);
    });
  }

  const Executor* const executor_;
  const Send send_;
  std::map<std::string, Entry> entries_;  // entries stay where they are
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_RPC_PUT_QUEUE_H_
