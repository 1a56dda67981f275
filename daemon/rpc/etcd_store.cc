#include "daemon/rpc/etcd_store.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"

namespace r2cc::daemon {
namespace {

namespace pb = etcdserverpb;

constexpr std::chrono::milliseconds kCallDeadline(2000);
constexpr Nanos kTickInterval = 250 * kNanosPerMs;
// A view of a node with 16 NICs takes a few KiB: a page stays far below the size that a message may have.
constexpr int64_t kPageEntries = 256;

// The first key behind all that begin with `prefix`.
std::string PrefixEnd(std::string prefix) {
  while (!prefix.empty() && prefix.back() == '\xff') prefix.pop_back();
  if (!prefix.empty()) ++prefix.back();
  return prefix;
}

// The bytes that are handed over in one turn of the core. A view with 1,016 pairs, and a certificate that is new, takes 2.6 ms.
constexpr size_t kChangesPerTurn = 4;

// A member of a cluster without a leader knows nothing new, and ends the stream instead of staying silent.
void RequireLeader(grpc::ClientContext* context) { context->AddMetadata("hasleader", "true"); }

}  // namespace

EtcdStore::EtcdStore(Executor* executor, const std::vector<std::string>& endpoints,
                     const std::shared_ptr<grpc::ChannelCredentials>& credentials)
    : executor_(executor),
      calls_(std::make_shared<CallCount>()),
      puts_(executor,
            [this](const auto& key, const auto& value, int64_t lease_ms, auto done) { SendPut(key, value, lease_ms, std::move(done)); }) {
  for (const std::string& address : endpoints) {
    const auto channel = EtcdChannel(address, credentials);
    endpoints_.push_back({address, pb::KV::NewStub(channel), pb::Watch::NewStub(channel), pb::Lease::NewStub(channel)});
  }
}

EtcdStore::~EtcdStore() {
  Stop();
  calls_->AwaitNone();
}

EtcdStore::Poster EtcdStore::MakePoster(const std::shared_ptr<bool>& session) const {
  return [session, executor = executor_](Task task) {
    executor->Post([session, task = std::move(task)] {
      if (*session) task();
    });
  };
}

template <typename Reply, typename Request, typename Begin>
void EtcdStore::Call(const Request& request, Begin begin, Poster post, std::function<void(const grpc::Status&, const Reply&)> done) {
  struct Pending {
    grpc::ClientContext context;
    Request request;
    Reply reply;
  };
  auto pending = std::make_shared<Pending>();
  pending->context.set_deadline(std::chrono::system_clock::now() + kCallDeadline);
  pending->request = request;
  calls_->Add(1);
  begin(&pending->context, &pending->request, &pending->reply,
        [pending, post = std::move(post), done = std::move(done), calls = calls_](grpc::Status status) {
          post([pending, done, status] { done(status, pending->reply); });
          calls->Add(-1);
        });
}

void EtcdStore::Start(const std::string& prefix, Callbacks callbacks) {
  prefix_ = prefix;
  callbacks_ = std::move(callbacks);
  SetState(absl::StrCat("connecting to etcd at ", endpoint().address));
  Connect();
  Tick();
}

void EtcdStore::Connect() {
  session_ = std::make_shared<bool>(true);
  page_key_ = prefix_;
  page_revision_ = 0;
  page_entries_ = kPageEntries;
  ReadPage();
}

void EtcdStore::ReadPage() {
  pb::RangeRequest request;
  request.set_key(page_key_);
  request.set_range_end(PrefixEnd(prefix_));
  request.set_limit(page_entries_);
  request.set_revision(page_revision_);
  Call<pb::RangeResponse>(
      request,
      [kv = endpoint().kv.get()](auto* context, auto* sent, auto* reply, auto done) { kv->async()->Range(context, sent, reply, done); },
      MakePoster(session_), [this](const grpc::Status& status, const pb::RangeResponse& page) { OnPage(status, page); });
}

void EtcdStore::OnPage(const grpc::Status& status, const pb::RangeResponse& page) {
  // A page is bounded by entries where it is asked for, and by bytes where it is received: views grow with what is wrong in the cluster.
  if (status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED && page_entries_ > 1) {
    page_entries_ /= 2;
    return ReadPage();
  }
  if (!status.ok()) return Lose(ShortReason(status));
  if (page_revision_ == 0) page_revision_ = page.header().revision();
  const bool last = !page.more() || page.kvs().empty();
  if (!last) page_key_ = page.kvs(page.kvs_size() - 1).key() + '\0';
  auto changes = std::make_shared<std::vector<StoreChange>>();
  for (const pb::KeyValue& entry : page.kvs())
    changes->push_back({entry.key(), entry.value(), false, static_cast<uint64_t>(entry.mod_revision())});
  HandOver(std::move(changes), 0, [this, last] { last ? StartWatch() : ReadPage(); });
}

void EtcdStore::HandOver(std::shared_ptr<const std::vector<StoreChange>> changes, size_t from, Task done) {
  const size_t to = std::min(changes->size(), from + kChangesPerTurn);
  // The callback for a change may end this connection.
  const std::shared_ptr<bool> session = session_;
  for (size_t i = from; i < to && *session; ++i) callbacks_.on_change((*changes)[i]);
  if (!*session) return;
  if (to == changes->size()) return done();
  MakePoster(session_)([this, changes = std::move(changes), to, done = std::move(done)] { HandOver(changes, to, done); });
}

void EtcdStore::StartWatch() {
  const Poster post = MakePoster(session_);
  calls_->Add(2);
  watch_ = WatchCall::Begin([this](auto* context, auto* call) { endpoint().watch->async()->Watch(context, call); }, RequireLeader,
                            {[this, post](pb::WatchResponse reply) { post([this, reply = std::move(reply)] { OnWatch(reply); }); },
                             [this, post, calls = calls_](const grpc::Status& status) {
                               post([this, why = ShortReason(status)] { Lose(why); });
                               calls->Add(-1);
                             }});
  keep_alive_ =
      KeepAliveCall::Begin([this](auto* context, auto* call) { endpoint().lease->async()->LeaseKeepAlive(context, call); }, RequireLeader,
                           {[this, post](pb::LeaseKeepAliveResponse reply) {
                              post([this, reply] {
                                OnKeepAlive(reply);
                                keep_alive_->ReadOn();
                              });
                            },
                            [this, post, calls = calls_](const grpc::Status& status) {
                              post([this, why = ShortReason(status)] { Lose(why); });
                              calls->Add(-1);
                            }});
  pb::WatchRequest request;
  pb::WatchCreateRequest* create = request.mutable_create_request();
  create->set_key(prefix_);
  create->set_range_end(PrefixEnd(prefix_));
  create->set_start_revision(page_revision_ + 1);
  create->set_fragment(true);
  watch_->Write(std::move(request));
}

void EtcdStore::OnWatch(const pb::WatchResponse& reply) {
  if (reply.canceled())
    return Lose(reply.compact_revision() > 0
                    ? absl::StrCat("the changes up to revision ", reply.compact_revision(), " were compacted before they were told")
                    : absl::StrCat("it ended the watch: ", reply.cancel_reason()));
  OnConnected();
  auto changes = std::make_shared<std::vector<StoreChange>>();
  for (const pb::Event& event : reply.events())
    changes->push_back(
        {event.kv().key(), event.kv().value(), event.type() == pb::Event::DELETE, static_cast<uint64_t>(event.kv().mod_revision())});
  HandOver(std::move(changes), 0, [this] { watch_->ReadOn(); });
}

void EtcdStore::OnConnected() {
  if (std::exchange(connected_, true)) return;
  SetState(absl::StrCat("connected to etcd at ", endpoint().address));
  backoff_.Reset();
  puts_.PutAllAgain();
}

void EtcdStore::EndCalls() {
  *session_ = false;
  connected_ = false;
  leases_.clear();
  if (watch_ != nullptr) std::exchange(watch_, nullptr)->Cancel();
  if (keep_alive_ != nullptr) std::exchange(keep_alive_, nullptr)->Cancel();
}

void EtcdStore::Lose(const std::string& why) {
  EndCalls();
  SetState(absl::StrCat("lost: etcd at ", endpoint().address, ": ", why));
  endpoint_ = (endpoint_ + 1) % endpoints_.size();
  reconnect_timer_ = executor_->RunAfter(backoff_.Next(), [this] {
    reconnect_timer_ = 0;
    Connect();
  });
}

void EtcdStore::Put(const std::string& key, const std::string& value, int64_t lease_ms) { puts_.Put(key, value, lease_ms); }

void EtcdStore::SendPut(const std::string& key, const std::string& value, int64_t lease_ms, std::function<void(bool)> done) {
  if (!connected_) return done(false);
  pb::PutRequest request;
  request.set_key(key);
  request.set_value(value);
  if (lease_ms > 0) {
    const auto [lease, fresh] = leases_.try_emplace(lease_ms);
    if (fresh) Grant(lease_ms);
    if (lease->second.id == 0) return done(false);  // the grant's answer puts again
    request.set_lease(lease->second.id);
  }
  // Answered also if the connection ends: the next put of this key waits for it.
  Call<pb::PutResponse>(
      request,
      [kv = endpoint().kv.get()](auto* context, auto* sent, auto* reply, auto end) { kv->async()->Put(context, sent, reply, end); },
      MakePoster(alive_),
      [this, done = std::move(done), session = session_](const grpc::Status& status, const pb::PutResponse&) {
        if (*session) OnPut(status);
        done(status.ok());
      });
}

void EtcdStore::OnPut(const grpc::Status& status) {
  const std::string connected = absl::StrCat("connected to etcd at ", endpoint().address);
  if (status.ok()) return SetState(connected);
  if (status.error_code() == grpc::StatusCode::NOT_FOUND)
    leases_.clear();  // ours ran out: new ones are asked for
  else
    SetState(absl::StrCat(connected, ", which does not take this node's entry: ", ShortReason(status)));
}

void EtcdStore::Grant(int64_t lease_ms) {
  pb::LeaseGrantRequest request;
  request.set_ttl((lease_ms + 999) / 1000);
  Call<pb::LeaseGrantResponse>(
      request,
      [lease = endpoint().lease.get()](auto* context, auto* sent, auto* reply, auto end) {
        lease->async()->LeaseGrant(context, sent, reply, end);
      },
      MakePoster(session_),
      [this, lease_ms](const grpc::Status& status, const pb::LeaseGrantResponse& reply) {
        if (!status.ok() || !reply.error().empty() || reply.id() == 0)
          return Lose(absl::StrCat("it grants no lease: ", status.ok() ? reply.error() : ShortReason(status)));
        const Nanos now = executor_->Now();
        leases_[lease_ms] = {reply.id(), now, now};
        puts_.Retry(/*renew_leases=*/false);
      });
}

void EtcdStore::OnKeepAlive(const pb::LeaseKeepAliveResponse& reply) {
  const auto lease = std::find_if(leases_.begin(), leases_.end(), [&](const auto& entry) { return entry.second.id == reply.id(); });
  if (lease == leases_.end()) return;
  lease->second.answered = executor_->Now();
  if (reply.ttl() > 0) return;
  leases_.erase(lease);
  puts_.PutAllAgain();
}

void EtcdStore::KeepLeases() {
  const Nanos now = executor_->Now();
  for (auto& [lease_ms, lease] : leases_) {
    if (lease.id == 0) continue;
    const Nanos time = lease_ms * kNanosPerMs;
    if (now - lease.answered > time) return Lose("it does not answer");
    if (now - lease.asked < time / 3) continue;
    lease.asked = now;
    pb::LeaseKeepAliveRequest request;
    request.set_id(lease.id);
    keep_alive_->Write(std::move(request));
  }
}

void EtcdStore::Tick() {
  if (connected_) {
    KeepLeases();
    puts_.Retry(/*renew_leases=*/false);
  }
  tick_timer_ = executor_->RunAfter(executor_->UntilNext(kTickInterval), [this] { Tick(); });
}

void EtcdStore::SetState(const std::string& state) {
  if (std::exchange(state_, state) != state) callbacks_.on_state(state);
}

void EtcdStore::Stop() {
  if (!std::exchange(*alive_, false)) return;
  EndCalls();
  if (reconnect_timer_ != 0) executor_->Cancel(std::exchange(reconnect_timer_, 0));
  if (tick_timer_ != 0) executor_->Cancel(std::exchange(tick_timer_, 0));
}

}  // namespace r2cc::daemon
