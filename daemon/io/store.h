// The place where every daemon leaves its node's view for all others: one small interface, so that the cluster may choose (the embedded
// store of one daemon, or etcd). The store being down changes nothing: peers push their views to each other directly as well.
#ifndef R2CC_DAEMON_IO_STORE_H_
#define R2CC_DAEMON_IO_STORE_H_

#include <functional>
#include <string>

#include "daemon/core/store_table.h"

namespace r2cc::daemon {

// A node that has not put its view for this time is removed from the store (not from the views that others hold).
constexpr int64_t kNodeLeaseMs = 6000;

// The core's thread only. The callbacks come on the core's thread too.
class Store {
 public:
  struct Callbacks {
    std::function<void(const StoreChange& change)> on_change;
    // "serving", "connected to n0", "lost: why"; for the operator.
    std::function<void(const std::string& state)> on_state;
  };

  virtual ~Store() = default;

  // Watches `prefix` for ever, over every loss of the store; after a loss the present entries come again.
  virtual void Start(const std::string& prefix, Callbacks callbacks) = 0;

  // Sets `key`, and keeps it set by putting it again within its lease and after every loss. The newest value of a key wins.
  virtual void Put(const std::string& key, const std::string& value, int64_t lease_ms) = 0;

  // After this no callback comes any more.
  virtual void Stop() = 0;
};

// No store is configured.
class NoStore final : public Store {
 public:
  void Start(const std::string&, Callbacks) override {}
  void Put(const std::string&, const std::string&, int64_t) override {}
  void Stop() override {}
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_IO_STORE_H_
