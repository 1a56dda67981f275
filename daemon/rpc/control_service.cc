// r2ccctl -> r2ccd.
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "daemon/rpc/caller_of.h"
#include "daemon/rpc/servers.h"
#include "proto/r2cc.grpc.pb.h"

namespace r2cc::daemon {
namespace {

// Streams the log from a sequence number on: reads it event by event as the client takes them, so a slow one holds nothing.
class EventStream final : public grpc::ServerWriteReactor<v1::Event> {
 public:
  EventStream(EventLog* log, const v1::EventsRequest& request) : log_(log), follow_(request.follow()), last_(request.after_sequence()) {
    listener_ = log_->Listen([this] { Wake(); });
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
    log_->Unlisten(listener_);
    delete this;
  }

 private:
  void Wake() {
    absl::MutexLock lock(&mutex_);
    MaybeWrite();
  }

  void MaybeWrite() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (writing_ || finished_) return;
    auto event = log_->After(last_);
    if (!event.has_value()) {
      if (!follow_) End(grpc::Status::OK);
      return;
    }
    last_ = event->sequence();
    event_ = *std::move(event);
    writing_ = true;
    StartWrite(&event_);
  }

  void End(const grpc::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!std::exchange(finished_, true)) Finish(status);
  }

  EventLog* const log_;
  const bool follow_;
  EventLog::ListenerId listener_;
  absl::Mutex mutex_;
  uint64_t last_ ABSL_GUARDED_BY(mutex_);
  v1::Event event_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

class ControlService final : public v1::Control::CallbackService {
 public:
  explicit ControlService(Backend* backend) : backend_(backend) {}

  grpc::ServerUnaryReactor* GetStatus(grpc::CallbackServerContext* context, const v1::StatusRequest*, v1::StatusReply* reply) override {
    auto* reactor = context->DefaultReactor();
    backend_->GetStatus(AnswerTo(reactor, reply));
    return reactor;
  }

  grpc::ServerUnaryReactor* ListNics(grpc::CallbackServerContext* context, const v1::ListNicsRequest* request,
                                     v1::ListNicsReply* reply) override {
    auto* reactor = context->DefaultReactor();
    backend_->ListNics(*request, AnswerTo(reactor, reply));
    return reactor;
  }

  grpc::ServerUnaryReactor* ActOnNic(grpc::CallbackServerContext* context, const v1::NicActionRequest* request,
                                     v1::NicActionReply* reply) override {
    auto* reactor = context->DefaultReactor();
    backend_->ActOnNic(*request, CallerOf(*context), AnswerTo(reactor, reply));
    return reactor;
  }

  grpc::ServerWriteReactor<v1::Event>* Events(grpc::CallbackServerContext*, const v1::EventsRequest* request) override {
    return new EventStream(&backend_->events(), *request);
  }

  grpc::ServerUnaryReactor* ListJobs(grpc::CallbackServerContext* context, const v1::ListJobsRequest*, v1::ListJobsReply* reply) override {
    auto* reactor = context->DefaultReactor();
    backend_->ListJobs(AnswerTo(reactor, reply));
    return reactor;
  }

  grpc::ServerUnaryReactor* GetPlan(grpc::CallbackServerContext* context, const v1::GetPlanRequest*, v1::Plan* reply) override {
    auto* reactor = context->DefaultReactor();
    backend_->GetPlan(AnswerTo(reactor, reply));
    return reactor;
  }

  grpc::ServerUnaryReactor* ExplainNic(grpc::CallbackServerContext* context, const v1::ExplainNicRequest* request,
                                       v1::ExplainNicReply* reply) override {
    auto* reactor = context->DefaultReactor();
    backend_->ExplainNic(*request, CallerOf(*context), AnswerTo(reactor, reply));
    return reactor;
  }

  grpc::ServerUnaryReactor* ProbePaths(grpc::CallbackServerContext* context, const v1::ProbePathsRequest* request,
                                       v1::ProbePathsReply* reply) override {
    auto* reactor = context->DefaultReactor();
    backend_->ProbePaths(*request, CallerOf(*context), AnswerTo(reactor, reply));
    return reactor;
  }

  grpc::ServerUnaryReactor* ExplainPlan(grpc::CallbackServerContext* context, const v1::ExplainPlanRequest*,
                                        v1::ExplainPlanReply* reply) override {
    auto* reactor = context->DefaultReactor();
    backend_->ExplainPlan(AnswerTo(reactor, reply));
    return reactor;
  }

 private:
  Backend* const backend_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeControlService(Backend* backend) { return std::make_unique<ControlService>(backend); }

}  // namespace r2cc::daemon
