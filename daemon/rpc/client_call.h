// Runs one stream that its client reads, from start to end: the common part of all such calls.
#ifndef R2CC_DAEMON_RPC_CLIENT_CALL_H_
#define R2CC_DAEMON_RPC_CLIENT_CALL_H_

#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/support/client_callback.h"

namespace r2cc::daemon {

// Thread-safe. Keeps itself alive until gRPC is done with it. It reads the next message when the last one was taken: a server that writes
// without end waits for itself. `Reactor`: gRPC's, for a stream of `Message`.
template <typename Reactor, typename Message>
class ClientCall : public Reactor {
 public:
  // The next message is wanted. No effect after the end.
  void ReadOn() {
    absl::MutexLock lock(&mutex_);
    if (ended_ || std::exchange(reading_, true)) return;
    this->StartRead(&message_);
  }

  void Cancel() {
    context_.TryCancel();
    {
      absl::MutexLock lock(&mutex_);
      if (reading_ || std::exchange(ended_, true)) return;
    }
    this->RemoveHold();
  }

  void OnReadDone(bool ok) final {
    const bool goes_on = ok && Accept(&message_);
    if (ok && !goes_on) context_.TryCancel();
    {
      absl::MutexLock lock(&mutex_);
      reading_ = false;
      if (!goes_on) ended_ = true;
    }
    if (!goes_on) return this->RemoveHold();
    OnMessage(&message_);
  }

  void OnDone(const grpc::Status& status) final {
    const std::shared_ptr<ClientCall> self = std::move(self_);
    Ended(status);
  }

 protected:
  // Before StartCall(), and after the call was prepared with context().
  void BeginReads(std::shared_ptr<ClientCall> self) {
    self_ = std::move(self);
    this->AddHold();  // reads and writes begin outside of gRPC's reactions
    ReadOn();
  }
  grpc::ClientContext* context() { return &context_; }
  // Nothing is read or written any more.
  bool ended() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return ended_; }

  // All functions below are called on gRPC's threads. False: the call ends, as such a message is refused.
  virtual bool Accept(Message* /*message*/) { return true; }
  // Takes what `message` holds before it returns or calls anybody; then ReadOn() is awaited.
  virtual void OnMessage(Message* message) = 0;
  // Once, as the last.
  virtual void Ended(const grpc::Status& status) = 0;

  absl::Mutex mutex_;

 private:
  grpc::ClientContext context_;
  Message message_;  // of the read under way
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::shared_ptr<ClientCall> self_;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_RPC_CLIENT_CALL_H_
