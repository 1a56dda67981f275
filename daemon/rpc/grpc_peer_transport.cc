#include "daemon/rpc/grpc_peer_transport.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/core/token_bucket.h"
#include "daemon/core/speaker.h"
#include "daemon/rpc/client_call.h"
#include "daemon/rpc/reconnect.h"
#include "daemon/rpc/view_message.h"
#include "proto/r2cc.grpc.pb.h"

namespace r2cc::daemon {
namespace {

// How long an operator's request may take on its way over another daemon.
constexpr std::chrono::milliseconds kActDeadline(3000);

}  // namespace

// One connection of the stream to one peer. Writes the broadcaster's newest view whenever it rings; one write at a time, so a slow peer
// gets the newest view next and never a backlog.
class GrpcPeerTransport::ExchangeCall final
    : public ClientCall<grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>, grpc::ByteBuffer> {
 public:
  using OnView = std::function<void(v1::NodeView)>;  // then ReadOn() is awaited
  using OnEnd = std::function<void(const grpc::Status&)>;

  // Both functions are called on gRPC's threads; `on_end` once, as the last.
  static std::shared_ptr<ExchangeCall> Begin(const std::string& peer, grpc::GenericStub* stub, ViewBroadcaster* broadcaster, OnView on_view,
                                             OnEnd on_end) {
    auto call = std::shared_ptr<ExchangeCall>(new ExchangeCall(peer, broadcaster, std::move(on_view), std::move(on_end)));
    stub->PrepareBidiStreamingCall(call->context(), "/r2cc.v1.Peer/Exchange", grpc::StubOptions(), call.get());
    call->BeginReads(call);
    // Before StartCall: afterwards the call may end at any time, and its end takes the listener away.
    call->listener_ = broadcaster->Listen([raw = call.get()] { raw->Wake(); });
    call->Wake();
    call->StartCall();
    return call;
  }

  void OnWriteDone(bool ok) override {
    absl::MutexLock lock(&mutex_);
    writing_ = false;
    if (ok) MaybeWrite();
  }

 private:
  ExchangeCall(std::string peer, ViewBroadcaster* broadcaster, OnView on_view, OnEnd on_end)
      : peer_(std::move(peer)), broadcaster_(broadcaster), on_view_(std::move(on_view)), on_end_(std::move(on_end)) {}

  bool Accept(grpc::ByteBuffer* message) override {
    refused_ = ParseViewMessage(std::exchange(*message, grpc::ByteBuffer()), &reply_);
    return refused_.ok();
  }

  void OnMessage(grpc::ByteBuffer*) override {
    v1::PushReply reply = std::exchange(reply_, v1::PushReply());
    if (reply.view().node() == peer_) broadcaster_->SetReached(peer_, true);
    on_view_(std::move(*reply.mutable_view()));
  }

  void Ended(const grpc::Status& status) override {
    broadcaster_->Unlisten(listener_);
    broadcaster_->SetReached(peer_, false);
    on_end_(refused_.ok() ? status : ToGrpc(refused_));
  }

  void Wake() {
    absl::MutexLock lock(&mutex_);
    dirty_ = true;
    MaybeWrite();
  }

  void MaybeWrite() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!dirty_ || writing_ || ended()) return;
    dirty_ = false;
    writing_ = true;
    v1::PushRequest request;
    *request.mutable_view() = *broadcaster_->Get();
    request_ = ViewMessageBytes(request);
    StartWrite(&request_);
  }

  const std::string peer_;
  ViewBroadcaster* const broadcaster_;
  const OnView on_view_;
  const OnEnd on_end_;
  v1::PushReply reply_;   // the last that was accepted
  absl::Status refused_;  // of the last view, which ended the call
  ViewBroadcaster::ListenerId listener_ = 0;

  grpc::ByteBuffer request_ ABSL_GUARDED_BY(mutex_);
  bool dirty_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
};

// Everything about one peer. The core's thread, but for the functions that gRPC calls: those only post.
class GrpcPeerTransport::Link {
 public:
  Link(Executor* executor, PeerSpec peer, const Credentials& credentials)
      : executor_(executor), peer_(std::move(peer)), stubs_(peer_, credentials) {}

  ~Link() {
    Stop();
    AwaitCalls();
  }

  // gRPC owns the calls until it has ended them, and they use the broadcaster.
  void AwaitCalls() {
    absl::MutexLock lock(&calls_->mutex);
    calls_->mutex.Await(absl::Condition(
        +[](int* under_way) { return *under_way == 0; }, &calls_->under_way));
  }

  bool HasCalls() const {
    absl::MutexLock lock(&calls_->mutex);
    return calls_->under_way > 0;
  }

  const PeerSpec& peer() const { return peer_; }

  void Start(ViewBroadcaster* broadcaster, const Callbacks& callbacks) {
    broadcaster_ = broadcaster;
    callbacks_ = callbacks;
    Connect();
  }

  void Stop() {
    *alive_ = false;
    if (timer_ != 0) executor_->Cancel(std::exchange(timer_, 0));
    if (call_ != nullptr) std::exchange(call_, nullptr)->Cancel();
    for (const auto& context : acts_->Take()) context->TryCancel();
  }

  // One call; `start` begins it: a method of the stub's async(). Without a stream nobody knows yet which way is good: all are tried.
  template <typename Request, typename Reply, typename Start>
  void Ask(const Request& request, Answer<Reply> answer, Start start) {
    struct AskCall {
      std::shared_ptr<grpc::ClientContext> context = std::make_shared<grpc::ClientContext>();
      Request request;
      Reply reply;
    };
    auto call = std::make_shared<AskCall>();
    call->request = request;
    call->context->set_deadline(std::chrono::system_clock::now() + kActDeadline);
    acts_->Add(call->context);
    calls_->Add(1);
    start(
        stubs_.get()->async(), call->context.get(), &call->request, &call->reply,
        [this, call, alive = alive_, acts = acts_, calls = calls_, executor = executor_, answer, start, peer = peer_](grpc::Status status) {
          acts->Remove(call->context);
          executor->Post([this, call, alive, answer, start, peer, status] {
            if (status.ok()) return answer(std::move(call->reply));
            const auto code = status.error_code();
            if (code == grpc::UNAVAILABLE && *alive && broadcaster_ == nullptr && stubs_.Next()) return Ask(call->request, answer, start);
            const bool unreachable = code == grpc::UNAVAILABLE || code == grpc::DEADLINE_EXCEEDED;
            answer(unreachable ? absl::UnavailableError(
                                     absl::StrCat("node ", peer.node, " (", peer.address, ") cannot be reached: ", ShortReason(status)))
                               : FromGrpc(status));
          });
          calls->Add(-1);
        });
  }

 private:
  struct CallCount {
    absl::Mutex mutex;
    int under_way ABSL_GUARDED_BY(mutex) = 0;
    void Add(int n) {
      absl::MutexLock lock(&mutex);
      under_way += n;
    }
  };
  class Contexts {
   public:
    void Add(const std::shared_ptr<grpc::ClientContext>& context) {
      absl::MutexLock lock(&mutex_);
      contexts_.push_back(context);
    }
    void Remove(const std::shared_ptr<grpc::ClientContext>& context) {
      absl::MutexLock lock(&mutex_);
      std::erase(contexts_, context);
    }
    std::vector<std::shared_ptr<grpc::ClientContext>> Take() {
      absl::MutexLock lock(&mutex_);
      return std::exchange(contexts_, {});
    }

   private:
    absl::Mutex mutex_;
    std::vector<std::shared_ptr<grpc::ClientContext>> contexts_ ABSL_GUARDED_BY(mutex_);
  };

  void Connect() {
    calls_->Add(1);
    answered_ = false;
    call_ = ExchangeCall::Begin(
        peer_.node, stubs_.generic(), broadcaster_,
        [this, alive = alive_, executor = executor_](v1::NodeView view) {
          executor->Post([this, alive, view = std::move(view)]() mutable {
            if (*alive) OnView(std::move(view));
          });
        },
        [this, alive = alive_, executor = executor_, calls = calls_](const grpc::Status& status) {
          executor->Post([this, alive, status] {
            if (*alive) OnEnd(status);
          });
          calls->Add(-1);
        });
  }

  void OnView(v1::NodeView view) {
    if (!std::exchange(answered_, true)) {
      backoff_.Reset();
      last_error_.clear();
      callbacks_.on_connected(peer_.node);
    }
    callbacks_.on_view(peer_.node, std::move(view));
    ReadMore();
  }

  // At once, or when the peer may speak again.
  void ReadMore() {
    if (call_ == nullptr) return;
    if (views_.Take(executor_->Now())) return call_->ReadOn();
    executor_->RunAfter(kNanosPerSecond / kViewsPerSecond, [this, alive = alive_, call = std::weak_ptr<ExchangeCall>(call_)] {
      if (*alive && call_ != nullptr && call_ == call.lock()) ReadMore();
    });
  }

  void OnEnd(const grpc::Status& status) {
    call_ = nullptr;
    if (!answered_ && stubs_.Next()) return Connect();
    const std::string why = ShortReason(status);
    if (answered_ || why != last_error_) callbacks_.on_lost(peer_.node, why);
    answered_ = false;
    last_error_ = why;
    timer_ = executor_->RunAfter(backoff_.Next(), [this, alive = alive_] {
      if (!*alive) return;
      timer_ = 0;
      Connect();
    });
  }

  Executor* const executor_;
  ViewBroadcaster* broadcaster_ = nullptr;
  const PeerSpec peer_;
  PeerStubs<v1::Peer> stubs_;
  Callbacks callbacks_;
  // False after Stop; read and written on the core's thread, and shared with the tasks that are still posted then.
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  const std::shared_ptr<CallCount> calls_ = std::make_shared<CallCount>();
  const std::shared_ptr<Contexts> acts_ = std::make_shared<Contexts>();
  std::shared_ptr<ExchangeCall> call_;
  bool answered_ = false;
  TokenBucket views_{kViewsPerSecond, kViewsBurst};
  std::string last_error_;
  ExponentialBackOff backoff_ = ReconnectBackOff();
  TimerId timer_ = 0;
};

GrpcPeerTransport::GrpcPeerTransport(Executor* executor, Credentials credentials)
    : executor_(executor), credentials_(std::move(credentials)) {}

GrpcPeerTransport::~GrpcPeerTransport() = default;

void GrpcPeerTransport::Start(ViewBroadcaster* broadcaster, Callbacks callbacks) {
  broadcaster_ = broadcaster;
  callbacks_ = std::move(callbacks);
}

void GrpcPeerTransport::SetPeers(const std::vector<PeerSpec>& peers) {
  std::erase_if(ended_, [](const auto& link) { return !link->HasCalls(); });
  std::vector<std::unique_ptr<Link>> before = std::exchange(links_, {});
  for (const PeerSpec& peer : peers) {
    const auto known =
        std::find_if(before.begin(), before.end(), [&](const auto& link) { return link != nullptr && link->peer() == peer; });
    if (known != before.end()) {
      links_.push_back(std::move(*known));
      continue;
    }
    links_.push_back(std::make_unique<Link>(executor_, peer, credentials_));
    links_.back()->Start(broadcaster_, callbacks_);
  }
  for (auto& gone : before) {
    if (gone == nullptr) continue;
    gone->Stop();
    ended_.push_back(std::move(gone));
  }
}

GrpcPeerTransport::Link* GrpcPeerTransport::LinkTo(const PeerSpec& peer) {
  for (const auto& link : links_)
    if (link->peer().node == peer.node) return link.get();
  std::erase_if(ended_, [](const auto& link) { return !link->HasCalls(); });
  ended_.push_back(std::make_unique<Link>(executor_, peer, credentials_));
  return ended_.back().get();
}

void GrpcPeerTransport::Act(const PeerSpec& peer, const v1::NicActionRequest& request, Answer<v1::NicActionReply> answer) {
  LinkTo(peer)->Ask(request, std::move(answer), [](auto* stub, auto... call) { stub->ActOnNic(call...); });
}

void GrpcPeerTransport::ForgetNode(const PeerSpec& peer, const v1::ForgetNodeRequest& request, Answer<v1::ForgetNodeReply> answer) {
  LinkTo(peer)->Ask(request, std::move(answer), [](auto* stub, auto... call) { stub->ForgetNode(call...); });
}

void GrpcPeerTransport::ExplainNic(const PeerSpec& peer, const v1::ExplainNicRequest& request, Answer<v1::ExplainNicReply> answer) {
  LinkTo(peer)->Ask(request, std::move(answer), [](auto* stub, auto... call) { stub->ExplainNic(call...); });
}

void GrpcPeerTransport::ProbePaths(const PeerSpec& peer, const v1::ProbePathsRequest& request, Answer<v1::ProbePathsReply> answer) {
  LinkTo(peer)->Ask(request, std::move(answer), [](auto* stub, auto... call) { stub->ProbePaths(call...); });
}

void GrpcPeerTransport::ReportJobs(const PeerSpec& peer, const v1::ReportJobsRequest& request, Answer<v1::ReportJobsReply> answer) {
  LinkTo(peer)->Ask(request, std::move(answer), [](auto* stub, auto... call) { stub->ReportJobs(call...); });
}

void GrpcPeerTransport::Stop() {
  for (const auto* links : {&links_, &ended_})
    for (const auto& link : *links) link->Stop();
  for (const auto* links : {&links_, &ended_})
    for (const auto& link : *links) link->AwaitCalls();
}

}  // namespace r2cc::daemon
