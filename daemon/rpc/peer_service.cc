// r2ccd -> r2ccd: the server's end.
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "daemon/rpc/caller_of.h"
#include "daemon/rpc/servers.h"
#include "proto/r2cc.grpc.pb.h"

namespace r2cc::daemon {
namespace {

// A peer's stream to us: takes its views, and writes ours at once, in answer, and whenever it changes unless our own stream to that peer
// brings it.
class ExchangeStream final : public grpc::ServerBidiReactor<v1::PushRequest, v1::PushReply> {
 public:
  ExchangeStream(Backend* backend, Caller from) : backend_(backend), from_(std::move(from)) {
    listener_ = backend_->broadcaster().Listen([this] { Wake(); });
    StartRead(&request_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      absl::MutexLock lock(&mutex_);
      End(grpc::Status::OK);
      return;
    }
    {
      absl::MutexLock lock(&mutex_);
      node_ = request_.view().node();
    }
    backend_->ReceiveView(std::move(*request_.mutable_view()), from_);
    // The first is answered at once, which tells the caller that it is connected; later on the broadcaster says when there is something to
    // say.
    if (!std::exchange(answered_, true)) Wake();
    StartRead(&request_);
  }

  void OnWriteDone(bool ok) override {
    absl::MutexLock lock(&mutex_);
    writing_ = false;
    if (ok) MaybeWrite();
  }

  void OnCancel() override {
    absl::MutexLock lock(&mutex_);
    End(grpc::Status::CANCELLED);
  }

  void OnDone() override {
    backend_->broadcaster().Unlisten(listener_);
    delete this;
  }

 private:
  void Wake() {
    absl::MutexLock lock(&mutex_);
    dirty_ = true;
    MaybeWrite();
  }

  void MaybeWrite() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!dirty_ || writing_ || finished_) return;
    // The first answer shows the peer who is here.
    if (introduced_ && backend_->broadcaster().Reaches(node_)) return;
    dirty_ = false;
    writing_ = true;
    *reply_.mutable_view() = *backend_->broadcaster().Get();
    introduced_ = !reply_.view().node().empty();
    StartWrite(&reply_);
  }

  void End(const grpc::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!std::exchange(finished_, true)) Finish(status);
  }

  Backend* const backend_;
  const Caller from_;
  ViewBroadcaster::ListenerId listener_;
  v1::PushRequest request_;  // the read under way
  bool answered_ = false;
  absl::Mutex mutex_;
  v1::PushReply reply_ ABSL_GUARDED_BY(mutex_);
  std::string node_ ABSL_GUARDED_BY(mutex_);
  bool introduced_ ABSL_GUARDED_BY(mutex_) = false;
  bool dirty_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

class PeerService final : public v1::Peer::CallbackService {
 public:
  explicit PeerService(Backend* backend) : backend_(backend) {}

  grpc::ServerBidiReactor<v1::PushRequest, v1::PushReply>* Exchange(grpc::CallbackServerContext* context) override {
    return new ExchangeStream(backend_, CallerOf(*context));
  }

  grpc::ServerUnaryReactor* ActOnNic(grpc::CallbackServerContext* context, const v1::NicActionRequest* request,
                                     v1::NicActionReply* reply) override {
    auto* reactor = context->DefaultReactor();
    backend_->ActOnNic(*request, FromAsker(request->asker(), CallerOf(*context)), AnswerTo(reactor, reply));
    return reactor;
  }

  grpc::ServerUnaryReactor* ExplainNic(grpc::CallbackServerContext* context, const v1::ExplainNicRequest* request,
                                       v1::ExplainNicReply* reply) override {
    auto* reactor = context->DefaultReactor();
    backend_->ExplainNic(*request, FromAsker(request->asker(), CallerOf(*context)), AnswerTo(reactor, reply));
    return reactor;
  }

  grpc::ServerUnaryReactor* ProbePaths(grpc::CallbackServerContext* context, const v1::ProbePathsRequest* request,
                                       v1::ProbePathsReply* reply) override {
    auto* reactor = context->DefaultReactor();
    backend_->ProbePaths(*request, FromAsker(request->asker(), CallerOf(*context)), AnswerTo(reactor, reply));
    return reactor;
  }

 private:
  Backend* const backend_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakePeerService(Backend* backend) { return std::make_unique<PeerService>(backend); }

}  // namespace r2cc::daemon
