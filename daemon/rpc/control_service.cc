// r2ccctl -> r2ccd.
#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/core/check.h"
#include "base/event_loop.h"
#include "daemon/core/event_filter.h"
#include "daemon/rpc/authenticator.h"
#include "daemon/rpc/servers.h"
#include "daemon/rpc/unary_call.h"
#include "proto/r2cc.grpc.pb.h"

namespace r2cc::daemon {
namespace {

// The followers of events, woken on a thread of their own: the core, which appends them, takes note that there is something, and that costs
// the same however many wait.
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

// Serves each row of the table that has a method of r2cc.v1.Control, and the events.
class ControlService final : public v1::Control::WithCallbackMethod_Events<v1::Control::Service> {
 public:
  ControlService(Backend* backend, const Authenticator* authenticator, std::shared_ptr<PendingReplies> replies)
      : backend_(backend), authenticator_(authenticator), replies_(std::move(replies)), followers_(&backend->events()) {
    const auto served = [this]<typename... Rows>(std::type_identity<std::tuple<Rows...>>) {
      return (int{MayServe<typename Rows::Request, typename Rows::Reply>()} + ...);
    }(std::type_identity<ControlRows>());
    R2CC_CHECK(served == Methods()->method_count() - 1);  // all but Events
  }

  grpc::ServerWriteReactor<v1::Event>* Events(grpc::CallbackServerContext* context, const v1::EventsRequest* request) override {
    const auto caller = Viewer(context, "events");
    if (!caller.ok()) return new RefusedEvents(caller.status());
    return new EventStream(&backend_->events(), &followers_, *request);
  }

 private:
  static const google::protobuf::ServiceDescriptor* Methods() {
    return v1::StatusRequest::descriptor()->file()->FindServiceByName("Control");
  }

  // As the generated code serves one method. False: the table's row has none.
  template <typename Request, typename Reply>
  bool MayServe() {
    if constexpr (std::is_base_of_v<google::protobuf::Message, Request>) {
      for (int index = 0; index < Methods()->method_count(); ++index) {
        if (Methods()->method(index)->input_type() != Request::descriptor()) continue;
        MarkMethodCallback(index, new grpc::internal::CallbackUnaryHandler<Request, Reply>(
                                      [this](grpc::CallbackServerContext* context, const Request* request, Reply* reply) {
                                        return Serve(context, *request, reply);
                                      }));
        return true;
      }
    }
    return false;
  }

  template <typename Request, typename Reply>
  grpc::ServerUnaryReactor* Serve(grpc::CallbackServerContext* context, const Request& request, Reply* reply) {
    const Access access = backend_->control().AccessTo(request);
    const auto caller =
        access.judged == Access::Where::kDoor ? Viewer(context, access.what, access.role) : authenticator_->Person(*context, access.what);
    auto* const call = new UnaryCall(replies_);
    if (caller.ok())
      backend_->Ask(request, *caller, AnswerTo(call, *caller, reply));
    else
      call->Refuse(caller.status());
    return call;
  }

  // A caller asks for this daemon's own events.
  absl::StatusOr<Caller> Viewer(grpc::CallbackServerContext* context, const std::string& what, Role role = Role::kView) {
    auto caller = authenticator_->Person(*context, what);
    if (!caller.ok()) return caller;
    if (const absl::Status status = backend_->Allow(*caller, role); !status.ok())
      return authenticator_->Refuse(*caller, "role", what, status);
    return caller;
  }

  Backend* const backend_;
  const Authenticator* const authenticator_;
  const std::shared_ptr<PendingReplies> replies_;
  Followers followers_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeControlService(Backend* backend, const Authenticator* authenticator,
                                                  std::shared_ptr<PendingReplies> replies) {
  return std::make_unique<ControlService>(backend, authenticator, std::move(replies));
}

}  // namespace r2cc::daemon
