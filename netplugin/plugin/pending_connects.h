// Keeps the connections that connect() has begun and not finished, by the listener's number: NCCL calls connect() repeatedly with the same
// handle, and has no call that gives one up. Any thread.
#ifndef R2CC_NETPLUGIN_PLUGIN_PENDING_CONNECTS_H_
#define R2CC_NETPLUGIN_PLUGIN_PENDING_CONNECTS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "base/core/clock.h"
#include "base/core/mutex.h"
#include "netplugin/transport/engine.h"

namespace r2cc::net {

class PendingConnects {
 public:
  // NCCL asks many times a second. A caller that has not asked for this time has given up.
  static constexpr Nanos kAbandonedAfter = 60 * kNanosPerSecond;

  // Null: none is pending.
  std::unique_ptr<SendComm> Take(uint64_t listen_id);
  void Put(uint64_t listen_id, std::unique_ptr<SendComm> comm, Nanos now);
  // Returns those that have failed and that no caller asks for any more, to be closed: otherwise their flows would keep a peer that is gone
  // for as long as the process runs.
  std::vector<std::unique_ptr<SendComm>> TakeAbandoned(Nanos now);

 private:
  struct Pending {
    std::unique_ptr<SendComm> comm;
    Nanos asked = 0;
  };
  Mutex mutex_;
  std::map<uint64_t, Pending> pending_ R2CC_GUARDED_BY(mutex_);
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_PLUGIN_PENDING_CONNECTS_H_
