// Runs one stream in both directions, as its client, from start to end.
#ifndef R2CC_DAEMON_RPC_BIDI_CALL_H_
#define R2CC_DAEMON_RPC_BIDI_CALL_H_

#include <deque>
#include <functional>
#include <memory>
#include <utility>

#include "daemon/rpc/client_call.h"

namespace r2cc::daemon {

template <typename Request, typename Reply>
class BidiCall final : public ClientCall<grpc::ClientBidiReactor<Request, Reply>, Reply> {
 public:
  struct Functions {                                  // called on gRPC's threads
    std::function<void(Reply)> on_reply;              // then ReadOn() is awaited
    std::function<void(const grpc::Status&)> on_end;  // once, as the last
  };

  // `start` begins the call with these two. `prepare` may add to the context.
  template <typename Start, typename Prepare>
  static std::shared_ptr<BidiCall> Begin(Start start, Prepare prepare, Functions functions) {
    auto call = std::shared_ptr<BidiCall>(new BidiCall(std::move(functions)));
    prepare(call->context());
    start(call->context(), call.get());
    call->BeginReads(call);
    call->StartCall();
    return call;
  }

  // Sent in the order of the calls; no effect after the end.
  void Write(Request request) {
    absl::MutexLock lock(&this->mutex_);
    if (this->ended()) return;
    queue_.push_back(std::move(request));
    if (queue_.size() == 1) this->StartWrite(&queue_.front());
  }

  void OnWriteDone(bool ok) override {
    absl::MutexLock lock(&this->mutex_);
    queue_.pop_front();
    if (ok && !this->ended() && !queue_.empty()) this->StartWrite(&queue_.front());
  }

 private:
  explicit BidiCall(Functions functions) : functions_(std::move(functions)) {}

  void OnMessage(Reply* reply) override { functions_.on_reply(std::move(*reply)); }
  void Ended(const grpc::Status& status) override { functions_.on_end(status); }

  const Functions functions_;
  std::deque<Request> queue_ ABSL_GUARDED_BY(this->mutex_);  // the first is being written
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_RPC_BIDI_CALL_H_
