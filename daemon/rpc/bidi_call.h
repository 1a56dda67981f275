// One life of a stream in both directions, as its client.
#ifndef R2CC_DAEMON_RPC_BIDI_CALL_H_
#define R2CC_DAEMON_RPC_BIDI_CALL_H_

#include <deque>
#include <functional>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/support/client_callback.h"

namespace r2cc::daemon {

// Thread-safe. Keeps itself alive until gRPC is done with it. It reads the next reply when the last one was taken: a server that writes
// without end waits for itself.
template <typename Request, typename Reply>
class BidiCall final : public grpc::ClientBidiReactor<Request, Reply> {
 public:
  struct Functions {                                  // called on gRPC's threads
    std::function<void(Reply)> on_reply;              // then ReadOn() is awaited
    std::function<void(const grpc::Status&)> on_end;  // once, as the last
  };

  // `start` begins the call with these two. `prepare` may add to the context.
  template <typename Start, typename Prepare>
  static std::shared_ptr<BidiCall> Begin(Start start, Prepare prepare, Functions functions) {
    auto call = std::shared_ptr<BidiCall>(new BidiCall(std::move(functions)));
    call->self_ = call;
    prepare(&call->context_);
    start(&call->context_, call.get());
    call->AddHold();  // reads and writes begin outside of gRPC's reactions
    call->ReadOn();
    call->StartCall();
    return call;
  }

  // Sent in the order of the calls; no effect after the end.
  void Write(Request request) {
    absl::MutexLock lock(&mutex_);
    if (ended_) return;
    queue_.push_back(std::move(request));
    if (queue_.size() == 1) this->StartWrite(&queue_.front());
  }

  // The next reply is wanted. No effect after the end.
  void ReadOn() {
    absl::MutexLock lock(&mutex_);
    if (ended_ || std::exchange(reading_, true)) return;
    reply_.Clear();
    this->StartRead(&reply_);
  }

  void Cancel() {
    context_.TryCancel();
    {
      absl::MutexLock lock(&mutex_);
      if (reading_ || std::exchange(ended_, true)) return;
    }
    this->RemoveHold();
  }

  void OnReadDone(bool ok) override {
    {
      absl::MutexLock lock(&mutex_);
      reading_ = false;
      if (!ok) ended_ = true;
    }
    if (!ok) return this->RemoveHold();
    functions_.on_reply(std::move(reply_));
  }

  void OnWriteDone(bool ok) override {
    absl::MutexLock lock(&mutex_);
    queue_.pop_front();
    if (ok && !ended_ && !queue_.empty()) this->StartWrite(&queue_.front());
  }

  void OnDone(const grpc::Status& status) override {
    const std::shared_ptr<BidiCall> self = std::move(self_);
    functions_.on_end(status);
  }

 private:
  explicit BidiCall(Functions functions) : functions_(std::move(functions)) {}

  const Functions functions_;
  grpc::ClientContext context_;
  Reply reply_;
  absl::Mutex mutex_;
  std::deque<Request> queue_ ABSL_GUARDED_BY(mutex_);  // the first is being written
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::shared_ptr<BidiCall> self_;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_RPC_BIDI_CALL_H_
