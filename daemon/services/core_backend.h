// The core as the servers see it: the table of what may be asked, and the views that peers push, each speaker at its own rate.
#ifndef R2CC_DAEMON_SERVICES_CORE_BACKEND_H_
#define R2CC_DAEMON_SERVICES_CORE_BACKEND_H_

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/core/clock.h"
#include "base/core/token_bucket.h"
#include "base/executor.h"
#include "base/mailbox.h"
#include "daemon/core/control_table.h"
#include "daemon/core/event_log.h"
#include "daemon/core/view_broadcaster.h"
#include "daemon/peers/peer_set.h"
#include "daemon/rpc/backend.h"

namespace r2cc::daemon {

// Thread-safe, but for the constructor and the destructor.
class CoreBackend final : public Backend {
 public:
  struct Parts {
    Executor* core;
    const ControlTable* control;
    PeerSet* peer_set;
    EventLog* events;
    ViewBroadcaster* broadcaster;
  };

  // The parts outlive it. `*alive` false: no speaker goes on any more.
  CoreBackend(const Parts& parts, std::shared_ptr<const bool> alive);
  CoreBackend(const CoreBackend&) = delete;
  CoreBackend& operator=(const CoreBackend&) = delete;

  const ControlTable& control() const override { return *parts_.control; }
  void ReceiveView(v1::NodeView view, uint64_t stream, const Caller& from, std::function<void()> taken = nullptr) override;
  void EndStream(uint64_t stream) override;
  EventLog& events() override { return *parts_.events; }
  ViewBroadcaster& broadcaster() override { return *parts_.broadcaster; }

 private:
  struct Received {
    v1::NodeView view;
    uint64_t stream = 0;
    Caller from;
    bool ended = false;  // the stream, and there is no view
    std::function<void()> taken;
  };
  // Lets a sender go on: at once, or when `who`, its node, may send again. The view is gone by then.
  void LetSpeak(const std::string& who, const Caller& from, std::function<void()> taken);

  const Parts parts_;
  const std::shared_ptr<const bool> alive_;
  struct Views {
    TokenBucket allowance;
    Nanos logged_at = 0;  // that it speaks too much
  };
  std::map<std::string, Views> views_;  // by node
  QueueMailbox<Received> received_;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_SERVICES_CORE_BACKEND_H_
