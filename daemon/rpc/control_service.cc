// r2ccctl -> r2ccd.
#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/event_loop.h"
#include "daemon/core/event_filter.h"
#include "daemon/rpc/authenticator.h"
#include "daemon/rpc/servers.h"
#include "daemon/rpc/unary_call.h"
#include "proto/r2cc.grpc.pb.h"

namespace r2cc::daemon {
namespace {

// Who waits for events, woken on a thread of its own: the core, which appends them, takes note that there is something, and that costs the
// same however many wait.
class Followers {
 public:
  explicit Followers(EventLog* log) : log_(log), thread_("r2ccd-events") {
    listener_ = log_->Listen([this] {
      if (!posted_.exchange(true)) thread_.loop().Post([this] { WakeAll(); });
    });
  }
  ~Followers() { log_->Unlisten(listener_); }
  Followers(const Followers&) = delete;
  Followers& operator=(const Followers&) = delete;

  using Id = uint64_t;
  Id Add(std::function<void()> wake) {
    absl::MutexLock lock(&mutex_);
    wake_.emplace(++last_, std::move(wake));
    return last_;
  }
  // When this returns the follower is not woken any more. Not from within it.
  void Remove(Id id) {
    absl::MutexLock lock(&mutex_);
    wake_.erase(id);
  }

 private:
  void WakeAll() {
    posted_ = false;
    absl::MutexLock lock(&mutex_);
    for (const auto& [id, wake] : wake_) wake();
  }

  EventLog* const log_;
  EventLog::ListenerId listener_;
  std::atomic<bool> posted_ = false;
  absl::Mutex mutex_;
  std::map<Id, std::function<void()>> wake_ ABSL_GUARDED_BY(mutex_);
  Id last_ ABSL_GUARDED_BY(mutex_) = 0;
  ScopedLoopThread thread_;  // ends first
};

// Streams the log from a sequence number on: reads it event by event as the client takes them, so a slow one holds nothing.
class EventStream final : public grpc::ServerWriteReactor<v1::Event> {
 public:
  EventStream(EventLog* log, Followers* followers, const v1::EventsRequest& request)
      : log_(log), followers_(followers), request_(request), last_(request.after_sequence()) {
    if (request.after_instance() != 0 && request.after_instance() != log_->instance()) last_ = 0;
    if (request.last() > 0) last_ = std::max(last_, log_->BeforeLast(request.last(), wanted_));
    follower_ = followers_->Add([this] { Wake(); });
    Wake();
  }

  void OnWriteDone(bool ok) override {
    absl::MutexLock lock(&mutex_);
    writing_ = false;
    if (ok)
      MaybeWrite();
    else
      End(grpc::Status::CANCELLED);
  }

  void OnCancel() override {
    absl::MutexLock lock(&mutex_);
    End(grpc::Status::CANCELLED);
  }

  void OnDone() override {
    followers_->Remove(follower_);
    delete this;
  }

 private:
  void Wake() {
    absl::MutexLock lock(&mutex_);
    MaybeWrite();
  }

  void MaybeWrite() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (writing_ || finished_) return;
    auto event = log_->After(last_, wanted_, &last_);
    if (!event.has_value()) {
      if (!request_.follow()) End(grpc::Status::OK);
      return;
    }
    event_ = *std::move(event);
    writing_ = true;
    StartWrite(&event_);
  }

  void End(const grpc::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!std::exchange(finished_, true)) Finish(status);
  }

  EventLog* const log_;
  Followers* const followers_;
  const v1::EventsRequest request_;
  const EventLog::Wanted wanted_ = [this](const v1::Event& event) { return Wanted(request_, event); };
  Followers::Id follower_;
  absl::Mutex mutex_;
  uint64_t last_ ABSL_GUARDED_BY(mutex_);
  v1::Event event_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

class RefusedEvents final : public grpc::ServerWriteReactor<v1::Event> {
 public:
  explicit RefusedEvents(const absl::Status& why) { Finish(ToGrpc(why)); }
  void OnDone() override { delete this; }
};

class ControlService final : public v1::Control::CallbackService {
 public:
  ControlService(Backend* backend, const Authenticator* authenticator)
      : backend_(backend), authenticator_(authenticator), followers_(&backend->events()) {}

  grpc::ServerUnaryReactor* GetStatus(grpc::CallbackServerContext* context, const v1::StatusRequest* request,
                                      v1::StatusReply* reply) override {
    const auto ask = [&](const Caller& caller, UnaryCall* call) { backend_->GetStatus(*request, AnswerTo(call, caller, reply)); };
    if (request->health()) return Known(context, "whether it serves", ask);
    return Viewed(context, "the status", ask);
  }
  grpc::ServerUnaryReactor* ListNics(grpc::CallbackServerContext* context, const v1::ListNicsRequest* request,
                                     v1::ListNicsReply* reply) override {
    return Viewed(context, "the NICs",
                  [&](const Caller& caller, UnaryCall* call) { backend_->ListNics(*request, AnswerTo(call, caller, reply)); });
  }
  grpc::ServerWriteReactor<v1::Event>* Events(grpc::CallbackServerContext* context, const v1::EventsRequest* request) override {
    const auto caller = Viewer(context, "events");
    if (!caller.ok()) return new RefusedEvents(caller.status());
    return new EventStream(&backend_->events(), &followers_, *request);
  }
  grpc::ServerUnaryReactor* ListJobs(grpc::CallbackServerContext* context, const v1::ListJobsRequest* request,
                                     v1::ListJobsReply* reply) override {
    return Viewed(context, "the jobs",
                  [&](const Caller& caller, UnaryCall* call) { backend_->ListJobs(*request, AnswerTo(call, caller, reply)); });
  }
  grpc::ServerUnaryReactor* GetPlan(grpc::CallbackServerContext* context, const v1::GetPlanRequest* request, v1::Plan* reply) override {
    return Viewed(context, "the plan",
                  [&](const Caller& caller, UnaryCall* call) { backend_->GetPlan(*request, AnswerTo(call, caller, reply)); });
  }
  grpc::ServerUnaryReactor* ExplainPlan(grpc::CallbackServerContext* context, const v1::ExplainPlanRequest* request,
                                        v1::ExplainPlanReply* reply) override {
    return Viewed(context, "the plan",
                  [&](const Caller& caller, UnaryCall* call) { backend_->ExplainPlan(*request, AnswerTo(call, caller, reply)); });
  }

  grpc::ServerUnaryReactor* GetConfig(grpc::CallbackServerContext* context, const v1::ConfigRequest* request,
                                      v1::ConfigReply* reply) override {
    return Viewed(context, "the configuration",
                  [&](const Caller& caller, UnaryCall* call) { backend_->GetConfig(*request, AnswerTo(call, caller, reply)); });
  }
  grpc::ServerUnaryReactor* Reload(grpc::CallbackServerContext* context, const v1::ReloadRequest* request,
                                   v1::ReloadReply* reply) override {
    return Known(context, "to have the configuration read again",
                 [&](const Caller& caller, UnaryCall* call) { backend_->Reload(*request, caller, AnswerTo(call, caller, reply)); });
  }
  grpc::ServerUnaryReactor* ReportJobs(grpc::CallbackServerContext* context, const v1::ReportJobsRequest* request,
                                       v1::ReportJobsReply* reply) override {
    return Known(context, "to have jobs reported",
                 [&](const Caller& caller, UnaryCall* call) { backend_->ReportJobs(*request, caller, AnswerTo(call, caller, reply)); });
  }
  grpc::ServerUnaryReactor* ForgetNode(grpc::CallbackServerContext* context, const v1::ForgetNodeRequest* request,
                                       v1::ForgetNodeReply* reply) override {
    return Known(context, "to have a node forgotten",
                 [&](const Caller& caller, UnaryCall* call) { backend_->ForgetNode(*request, caller, AnswerTo(call, caller, reply)); });
  }

  // These are judged by the node that does them.
  grpc::ServerUnaryReactor* ActOnNic(grpc::CallbackServerContext* context, const v1::NicActionRequest* request,
                                     v1::NicActionReply* reply) override {
    return Known(context, "to act on a NIC",
                 [&](const Caller& caller, UnaryCall* call) { backend_->ActOnNic(*request, caller, AnswerTo(call, caller, reply)); });
  }
  grpc::ServerUnaryReactor* ExplainNic(grpc::CallbackServerContext* context, const v1::ExplainNicRequest* request,
                                       v1::ExplainNicReply* reply) override {
    return Known(context, "to have a NIC explained",
                 [&](const Caller& caller, UnaryCall* call) { backend_->ExplainNic(*request, caller, AnswerTo(call, caller, reply)); });
  }
  grpc::ServerUnaryReactor* ProbePaths(grpc::CallbackServerContext* context, const v1::ProbePathsRequest* request,
                                       v1::ProbePathsReply* reply) override {
    return Known(context, "to see probes",
                 [&](const Caller& caller, UnaryCall* call) { backend_->ProbePaths(*request, caller, AnswerTo(call, caller, reply)); });
  }

 private:
  // Who asks for what this daemon says itself.
  absl::StatusOr<Caller> Viewer(grpc::CallbackServerContext* context, const std::string& what) {
    auto caller = authenticator_->Person(*context, what);
    if (!caller.ok()) return caller;
    if (const absl::Status status = backend_->Allow(*caller, Role::kView); !status.ok())
      return authenticator_->Refuse(*caller, "role", what, status);
    return caller;
  }
  template <typename Ask>
  grpc::ServerUnaryReactor* Viewed(grpc::CallbackServerContext* context, const std::string& what, Ask ask) {
    return Asked(Viewer(context, what), ask);
  }
  template <typename Ask>
  grpc::ServerUnaryReactor* Known(grpc::CallbackServerContext* context, const std::string& what, Ask ask) {
    return Asked(authenticator_->Person(*context, what), ask);
  }
  template <typename Ask>
  grpc::ServerUnaryReactor* Asked(const absl::StatusOr<Caller>& caller, Ask ask) {
    auto* const call = new UnaryCall(replies_);
    if (caller.ok())
      ask(*caller, call);
    else
      call->Refuse(caller.status());
    return call;
  }

  Backend* const backend_;
  const Authenticator* const authenticator_;
  const std::shared_ptr<HeldReplies> replies_ = std::make_shared<HeldReplies>();
  Followers followers_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeControlService(Backend* backend, const Authenticator* authenticator) {
  return std::make_unique<ControlService>(backend, authenticator);
}

}  // namespace r2cc::daemon
