// Lets threads of the job wait until no link touches the buffers of a flow that they close, while the I/O thread continues with everything
// else. A link that cannot be ended holds up its closer for as long as that takes: the buffers must not be freed before.
#ifndef R2CC_NETPLUGIN_TRANSPORT_FLOW_CLOSER_H_
#define R2CC_NETPLUGIN_TRANSPORT_FLOW_CLOSER_H_

#include <functional>
#include <utility>
#include <vector>

#include "base/core/clock.h"
#include "base/core/mutex.h"
#include "netplugin/config/log.h"

namespace r2cc::net {

class FlowCloser {
 public:
  // One close. It must keep its address until Await() has returned.
  class Close {
   private:
    friend class FlowCloser;
    std::function<bool()> holds_;
    Nanos warn_at_ = 0;
    Mutex mutex_;
    CondVar changed_;
    bool done_ R2CC_GUARDED_BY(mutex_) = false;
  };
  explicit FlowCloser(LogFn log) : log_(std::move(log)) {}

  // I/O thread. `holds`: a link may still touch the buffers; each Look() calls it again.
  void Begin(Close* close, std::function<bool()> holds, Nanos now);
  void Look(Nanos now);
  bool empty() const { return closes_.empty(); }
  // I/O thread, at its end, when all links are gone: releases all waiters.
  void End();

  // Any other thread: waits until the close is done. Not under a lock of a peer.
  void Await(Close* close);

 private:
  static void Done(Close* close);

  const LogFn log_;
  std::vector<Close*> closes_;  // I/O thread
  bool ended_ = false;          // the same
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_FLOW_CLOSER_H_
