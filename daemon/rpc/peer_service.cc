// r2ccd -> r2ccd: the server's end.
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/names.h"
#include "daemon/rpc/authenticator.h"
#include "daemon/rpc/servers.h"
#include "daemon/rpc/unary_call.h"
#include "daemon/rpc/view_message.h"
#include "proto/r2cc.grpc.pb.h"

namespace r2cc::daemon {
namespace {

// The streams of each speaker. Thread-safe.
class ExchangeCounts {
 public:
  // False: `who` has `most` already.
  bool Begin(const std::string& who, size_t most) {
    absl::MutexLock lock(&mutex_);
    size_t& streams = streams_[who];
    if (streams >= most) return false;
    ++streams;
    return true;
  }
  void End(const std::string& who) {
    absl::MutexLock lock(&mutex_);
    if (const auto found = streams_.find(who); found != streams_.end() && --found->second == 0) streams_.erase(found);
  }

 private:
  absl::Mutex mutex_;
  std::map<std::string, size_t> streams_ ABSL_GUARDED_BY(mutex_);
};

// A peer's stream to us: takes its views, and writes ours at once, in answer, and whenever it changes unless our own stream to that peer
// brings it.
class ExchangeStream final : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  // `counts`: its speaker's streams, among which it is, as one of `who`.
  ExchangeStream(Backend* backend, const Authenticator* authenticator, Caller from, ExchangeCounts* counts, std::string who)
      : backend_(backend), authenticator_(authenticator), from_(std::move(from)), counts_(counts), who_(std::move(who)) {
    {
      absl::MutexLock lock(&self_->mutex);
      self_->stream = this;
    }
    listener_ = backend_->broadcaster().Listen([this] { Wake(); });
    StartRead(&request_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      absl::MutexLock lock(&mutex_);
      End(grpc::Status::OK);
      return;
    }
    v1::PushRequest request;
    if (const absl::Status status = ParseViewMessage(std::exchange(request_, grpc::ByteBuffer()), &request); !status.ok()) {
      const absl::Status why = authenticator_->Refuse(from_, "garbled", "a view", status);
      absl::MutexLock lock(&mutex_);
      End(ToGrpc(why));
      return;
    }
    const std::string& node = request.view().node();
    // A daemon speaks for its own node alone.
    if (from_.kind == Caller::Kind::kNode && node != from_.name) {
      const absl::Status why = authenticator_->Refuse(
          from_, "other-node", "a view of another node",
          absl::PermissionDeniedError(absl::StrCat("the certificate of node ", from_.name, " is not that of node '",
                                                   CleanText(node.data(), std::min(node.size(), kNodeNameBytesMax)), "'")));
      absl::MutexLock lock(&mutex_);
      End(ToGrpc(why));
      return;
    }
    {
      absl::MutexLock lock(&mutex_);
      node_ = node;
    }
    // The next is read once this one was looked at: a peer's later views wait at its end, where the newest takes the others' place.
    backend_->ReceiveView(std::move(*request.mutable_view()), stream_, from_, [self = self_] {
      absl::MutexLock lock(&self->mutex);
      if (self->stream != nullptr) self->stream->ReadOn();
    });
    // The first is answered at once, which shows the caller that it is connected; later on the broadcaster rings when there is something to
    // send.
    if (!std::exchange(answered_, true)) Wake();
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
    backend_->EndStream(stream_);
    counts_->End(who_);
    {
      absl::MutexLock lock(&self_->mutex);
      self_->stream = nullptr;
    }
    delete this;
  }

 private:
  // For the core, which may look at a view after its stream's end.
  struct Self {
    absl::Mutex mutex;
    ExchangeStream* stream ABSL_GUARDED_BY(mutex);
  };

  void ReadOn() {
    absl::MutexLock lock(&mutex_);
    if (!finished_) StartRead(&request_);
  }

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
    v1::PushReply reply;
    *reply.mutable_view() = *backend_->broadcaster().Get();
    introduced_ = !reply.view().node().empty();
    reply_ = ViewMessageBytes(reply);
    StartWrite(&reply_);
  }

  void End(const grpc::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!std::exchange(finished_, true)) Finish(status);
  }

  Backend* const backend_;
  const Authenticator* const authenticator_;
  const Caller from_;
  ExchangeCounts* const counts_;
  const std::string who_;
  const uint64_t stream_ = NextStream();
  const std::shared_ptr<Self> self_ = std::make_shared<Self>();
  ViewBroadcaster::ListenerId listener_;
  grpc::ByteBuffer request_;  // the read under way
  bool answered_ = false;
  absl::Mutex mutex_;
  grpc::ByteBuffer reply_ ABSL_GUARDED_BY(mutex_);
  std::string node_ ABSL_GUARDED_BY(mutex_);
  bool introduced_ ABSL_GUARDED_BY(mutex_) = false;
  bool dirty_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

// The only answer that an unauthenticated caller's stream gets.
class RefusedStream final : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  explicit RefusedStream(const absl::Status& why) { Finish(ToGrpc(why)); }
  void OnDone() override { delete this; }
};

// As v1::Peer::CallbackService, but for Exchange, whose messages are looked at before they are parsed.
template <class Base>
using Unary = v1::Peer::WithCallbackMethod_ActOnNic<v1::Peer::WithCallbackMethod_ExplainNic<
    v1::Peer::WithCallbackMethod_ProbePaths<v1::Peer::WithCallbackMethod_ForgetNode<v1::Peer::WithCallbackMethod_ReportJobs<Base>>>>>;

class PeerService final : public v1::Peer::WithRawCallbackMethod_Exchange<Unary<v1::Peer::Service>> {
 public:
  PeerService(Backend* backend, const Authenticator* authenticator) : backend_(backend), authenticator_(authenticator) {}

  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* Exchange(grpc::CallbackServerContext* context) override {
    const auto caller = authenticator_->Peer(*context, "to exchange views");
    if (!caller.ok()) return new RefusedStream(caller.status());
    const bool proven = caller->kind == Caller::Kind::kNode;
    std::string who = proven ? caller->name : caller->address.substr(0, caller->address.rfind(':'));
    const size_t most = proven ? RpcServers::kExchangesPerNodeMax : RpcServers::kExchangesPerAddressMax;
    if (!counts_.Begin(who, most))
      return new RefusedStream(
          authenticator_->Refuse(*caller, "too-many", "to exchange views",
                                 absl::ResourceExhaustedError(absl::StrCat("you exchange views on ", most, " streams already"))));
    return new ExchangeStream(backend_, authenticator_, *caller, &counts_, std::move(who));
  }

  grpc::ServerUnaryReactor* ActOnNic(grpc::CallbackServerContext* context, const v1::NicActionRequest* request,
                                     v1::NicActionReply* reply) override {
    return Forwarded(context, *request, reply);
  }

  grpc::ServerUnaryReactor* ExplainNic(grpc::CallbackServerContext* context, const v1::ExplainNicRequest* request,
                                       v1::ExplainNicReply* reply) override {
    return Forwarded(context, *request, reply);
  }

  grpc::ServerUnaryReactor* ProbePaths(grpc::CallbackServerContext* context, const v1::ProbePathsRequest* request,
                                       v1::ProbePathsReply* reply) override {
    return Forwarded(context, *request, reply);
  }

  grpc::ServerUnaryReactor* ForgetNode(grpc::CallbackServerContext* context, const v1::ForgetNodeRequest* request,
                                       v1::ForgetNodeReply* reply) override {
    return Forwarded(context, *request, reply);
  }

  grpc::ServerUnaryReactor* ReportJobs(grpc::CallbackServerContext* context, const v1::ReportJobsRequest* request,
                                       v1::ReportJobsReply* reply) override {
    return Forwarded(context, *request, reply);
  }

 private:
  // Asks in the name of the one whom the forwarding daemon names.
  template <typename Request, typename Reply>
  grpc::ServerUnaryReactor* Forwarded(grpc::CallbackServerContext* context, const Request& request, Reply* reply) {
    auto* const call = new UnaryCall(replies_);
    const auto peer = authenticator_->Peer(*context, backend_->control().AccessTo(request).what);
    if (!peer.ok()) {
      call->Refuse(peer.status());
      return call;
    }
    const Caller asker = FromAsker(request.asker(), *peer);
    backend_->Ask(request, asker, AnswerTo(call, asker, reply));
    return call;
  }

  Backend* const backend_;
  const Authenticator* const authenticator_;
  ExchangeCounts counts_;
  const std::shared_ptr<PendingReplies> replies_ = std::make_shared<PendingReplies>();
};

}  // namespace

std::unique_ptr<grpc::Service> MakePeerService(Backend* backend, const Authenticator* authenticator) {
  return std::make_unique<PeerService>(backend, authenticator);
}

}  // namespace r2cc::daemon
