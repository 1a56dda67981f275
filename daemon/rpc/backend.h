// The interface of the core for the servers of gRPC and HTTP. They hold no state of their own.
#ifndef R2CC_DAEMON_RPC_BACKEND_H_
#define R2CC_DAEMON_RPC_BACKEND_H_

#include <cstdint>
#include <functional>
#include <utility>

#include "daemon/core/answer.h"
#include "daemon/core/caller.h"
#include "daemon/core/control_table.h"
#include "daemon/core/event_log.h"
#include "daemon/core/roles.h"
#include "daemon/core/speaker.h"
#include "daemon/core/view_broadcaster.h"
#include "proto/r2cc.pb.h"

namespace r2cc::daemon {

// Thread-safe.
class Backend {
 public:
  virtual ~Backend() = default;
  // The requests and their handlers.
  virtual const ControlTable& control() const = 0;
  // A peer's view, sent to us by `from` on its stream `stream`: NextStream() of one stream from its beginning to its end. `taken`, if not
  // null, is called on the core's thread once it was examined and `from` may send more: the reader of the stream continues only then, so
  // that a node that sends without end waits at its own cost.
  virtual void ReceiveView(v1::NodeView view, uint64_t stream, const Caller& from, std::function<void()> taken = nullptr) = 0;
  // A peer's stream is over: nothing comes by it any more.
  virtual void EndStream(uint64_t stream) = 0;
  virtual EventLog& events() = 0;
  virtual ViewBroadcaster& broadcaster() = 0;

  absl::Status Allow(const Caller& caller, Role role) const { return control().Allow(caller, role); }
  template <typename Request>
  void Ask(const Request& request, const Caller& caller, Answer<ReplyTo<Request>> answer) const {
    control().Ask(request, caller, std::move(answer));
  }
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_RPC_BACKEND_H_
