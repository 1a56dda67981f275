#include "daemon/rpc/grpc_store.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/rpc/client_call.h"

namespace r2cc::daemon {
namespace {

constexpr std::chrono::milliseconds kPutDeadline(1000);
constexpr Nanos kTickInterval = 250 * kNanosPerMs;

}  // namespace

// One connection of the watch.
class GrpcStore::WatchCall final : public ClientCall<grpc::ClientReadReactor<v1::WatchReply>, v1::WatchReply> {
 public:
  struct Functions {  // called on gRPC's threads
    std::function<void()> on_connected;
    std::function<void(StoreChange)> on_change;       // then ReadOn() is awaited
    std::function<void(const grpc::Status&)> on_end;  // once, as the last
  };

  static std::shared_ptr<WatchCall> Begin(v1::Store::Stub* stub, const std::string& prefix, Functions functions) {
    auto call = std::shared_ptr<WatchCall>(new WatchCall(std::move(functions)));
    call->request_.set_prefix(prefix);
    stub->async()->Watch(call->context(), &call->request_, call.get());
    call->BeginReads(call);
    call->StartCall();
    return call;
  }

  void OnReadInitialMetadataDone(bool ok) override {
    if (ok) functions_.on_connected();
  }

 private:
  explicit WatchCall(Functions functions) : functions_(std::move(functions)) {}

  void OnMessage(v1::WatchReply* change) override {
    functions_.on_change({std::move(*change->mutable_key()), std::move(*change->mutable_value()), change->deleted(), change->revision()});
  }
  void Ended(const grpc::Status& status) override { functions_.on_end(status); }

  const Functions functions_;
  v1::WatchRequest request_;
};

GrpcStore::GrpcStore(Executor* executor, const PeerSpec& server, const Credentials& credentials)
    : executor_(executor),
      server_(server),
      stubs_(server, credentials),
      calls_(std::make_shared<CallCount>()),
      puts_(executor,
            [this](const auto& key, const auto& value, int64_t lease_ms, auto done) { SendPut(key, value, lease_ms, std::move(done)); }) {}

GrpcStore::~GrpcStore() {
  Stop();
  calls_->AwaitNone();
}

void GrpcStore::Start(const std::string& prefix, Callbacks callbacks) {
  prefix_ = prefix;
  callbacks_ = std::move(callbacks);
  SetState(absl::StrCat("connecting to ", server_.node));
  Connect();
  Tick();
}

void GrpcStore::Connect() {
  calls_->Add(1);
  const auto post = [alive = alive_, executor = executor_](std::function<void()> task) {
    executor->Post([alive, task = std::move(task)] {
      if (*alive) task();
    });
  };
  watch_ = WatchCall::Begin(stubs_.get(), prefix_,
                            {[this, post] { post([this] { OnConnected(); }); },
                             [this, post](StoreChange change) {
                               post([this, change = std::move(change)] {
                                 OnConnected();
                                 callbacks_.on_change(change);
                                 if (watch_ != nullptr) watch_->ReadOn();
                               });
                             },
                             [this, post, calls = calls_](const grpc::Status& status) {
                               post([this, why = ShortReason(status)] { OnEnd(why); });
                               calls->Add(-1);
                             }});
}

void GrpcStore::OnConnected() {
  connected_ = true;
  const std::string state = absl::StrCat("connected to ", server_.node);
  if (state_ == state) return;
  SetState(state);
  backoff_.Reset();
  puts_.PutAllAgain();  // its memory may be a new one
}

void GrpcStore::OnEnd(const std::string& why) {
  watch_ = nullptr;
  if (!std::exchange(connected_, false) && stubs_.Next()) return Connect();
  SetState(absl::StrCat("lost: ", server_.node, " (", server_.address, "): ", why));
  reconnect_timer_ = executor_->RunAfter(backoff_.Next(), [this, alive = alive_] {
    if (!*alive) return;
    reconnect_timer_ = 0;
    Connect();
  });
}

void GrpcStore::Put(const std::string& key, const std::string& value, int64_t lease_ms) { puts_.Put(key, value, lease_ms); }

void GrpcStore::SendPut(const std::string& key, const std::string& value, int64_t lease_ms, std::function<void(bool)> done) {
  struct PutCall {
    grpc::ClientContext context;
    v1::PutRequest request;
    v1::PutReply reply;
  };
  auto call = std::make_shared<PutCall>();
  call->context.set_deadline(std::chrono::system_clock::now() + kPutDeadline);
  call->request.set_key(key);
  call->request.set_value(value);
  call->request.set_lease_ms(lease_ms);
  calls_->Add(1);
  stubs_.get()->async()->Put(&call->context, &call->request, &call->reply,
                             [call, done = std::move(done), alive = alive_, executor = executor_, calls = calls_](grpc::Status status) {
                               executor->Post([alive, done, ok = status.ok()] {
                                 if (*alive) done(ok);
                               });
                               calls->Add(-1);
                             });
}

void GrpcStore::Tick() {
  puts_.Retry(/*renew_leases=*/true);
  tick_timer_ = executor_->RunAfter(executor_->UntilNext(kTickInterval), [this, alive = alive_] {
    if (*alive) Tick();
  });
}

void GrpcStore::SetState(const std::string& state) {
  if (std::exchange(state_, state) != state) callbacks_.on_state(state);
}

void GrpcStore::Stop() {
  *alive_ = false;
  if (reconnect_timer_ != 0) executor_->Cancel(std::exchange(reconnect_timer_, 0));
  if (tick_timer_ != 0) executor_->Cancel(std::exchange(tick_timer_, 0));
  if (watch_ != nullptr) std::exchange(watch_, nullptr)->Cancel();
}

}  // namespace r2cc::daemon
