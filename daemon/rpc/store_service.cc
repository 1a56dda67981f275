#include "daemon/rpc/store_service.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/names.h"
#include "daemon/rpc/channel.h"

namespace r2cc::daemon {
namespace {

// Keys that one watcher may lag behind with; then it has to begin again from the present entries. Each node has one.
constexpr size_t kBacklogMax = 2 * StoreTable::kEntriesMax;
constexpr Nanos kExpireInterval = 250 * kNanosPerMs;

// Writes what has changed, as fast as the client takes it. Pending changes are a set of keys: a value is looked up when it is its turn, so
// that who does not read costs no copy of it, and who reads slowly gets the newest.
class WatchStream final : public grpc::ServerWriteReactor<v1::WatchReply> {
 public:
  WatchStream(StoreService* service, const std::string& prefix, std::string caller) : service_(service), caller_(std::move(caller)) {
    watcher_ = service_->AddWatcher(prefix, [this](const StoreChange& change) { Add(change); });
  }

  void OnWriteDone(bool ok) override {
    std::string key;
    {
      absl::MutexLock lock(&mutex_);
      writing_ = false;
      if (!ok) End(grpc::Status::CANCELLED);
      if (finished_ || backlog_.empty()) return;
      key = std::move(backlog_.front());
      backlog_.pop_front();
      waiting_.erase(key);
      writing_ = true;
    }
    // Without the lock, which is taken within the service's.
    const StoreChange change = service_->Get(key);
    absl::MutexLock lock(&mutex_);
    Write(change);
  }

  void OnCancel() override {
    absl::MutexLock lock(&mutex_);
    End(grpc::Status::CANCELLED);
  }

  void OnDone() override {
    service_->RemoveWatcher(watcher_);
    service_->EndWatch(caller_);
    delete this;
  }

 private:
  void Add(const StoreChange& change) {
    absl::MutexLock lock(&mutex_);
    if (finished_) return;
    if (!writing_) {
      writing_ = true;
      return Write(change);
    }
    if (!waiting_.insert(change.key).second) return;
    if (backlog_.size() >= kBacklogMax) {
      backlog_.clear();
      End(grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "this watcher reads too slowly; it starts again"));
      return;
    }
    backlog_.push_back(change.key);
  }

  void Write(const StoreChange& change) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (finished_) return;
    reply_.set_key(change.key);
    reply_.set_value(change.value);
    reply_.set_deleted(change.deleted);
    reply_.set_revision(change.revision);
    StartWrite(&reply_);
  }

  void End(const grpc::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!std::exchange(finished_, true)) Finish(status);
  }

  StoreService* const service_;
  const std::string caller_;
  StoreService::WatcherId watcher_;
  absl::Mutex mutex_;
  std::deque<std::string> backlog_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> waiting_ ABSL_GUARDED_BY(mutex_);  // the same
  v1::WatchReply reply_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

class RefusedWatch final : public grpc::ServerWriteReactor<v1::WatchReply> {
 public:
  explicit RefusedWatch(const absl::Status& why) { Finish(ToGrpc(why)); }
  void OnDone() override { delete this; }
};

}  // namespace

grpc::ServerUnaryReactor* StoreService::Put(grpc::CallbackServerContext* context, const v1::PutRequest* request, v1::PutReply* reply) {
  auto* reactor = context->DefaultReactor();
  const auto caller = authenticator_->Peer(*context, "to put into the store");
  absl::Status status = caller.status();
  if (caller.ok() && caller->kind == Caller::Kind::kNode && request->key() != nodes_ + caller->name)
    status = authenticator_->Refuse(
        *caller, "other-node", "to put into the store",
        absl::PermissionDeniedError(absl::StrCat("node ", caller->name, " puts ", nodes_, caller->name, " and nothing else, not '",
                                                 CleanText(request->key().data(), std::min<size_t>(request->key().size(), 128)), "'")));
  if (status.ok()) status = PutEntry(request->key(), request->value(), request->lease_ms());
  {
    absl::MutexLock lock(&mutex_);
    reply->set_revision(table_.revision());
  }
  reactor->Finish(ToGrpc(status));
  return reactor;
}

grpc::ServerWriteReactor<v1::WatchReply>* StoreService::Watch(grpc::CallbackServerContext* context, const v1::WatchRequest* request) {
  const auto caller = authenticator_->Peer(*context, "to read the store");
  if (!caller.ok()) return new RefusedWatch(caller.status());
  std::string who = caller->kind == Caller::Kind::kNode ? caller->name : caller->address.substr(0, caller->address.rfind(':'));
  if (!BeginWatch(who))
    return new RefusedWatch(
        authenticator_->Refuse(*caller, "too-many", "to read the store",
                               absl::ResourceExhaustedError(absl::StrCat("you read it ", kWatchesPerCallerMax, " times already"))));
  return new WatchStream(this, request->prefix(), std::move(who));
}

absl::Status StoreService::PutEntry(const std::string& key, const std::string& value, int64_t lease_ms) {
  absl::MutexLock lock(&mutex_);
  const auto change = table_.Put(key, value, lease_ms, executor_->Now());
  if (change.ok() && change->has_value()) Publish(**change);
  return change.status();
}

void StoreService::Expire() {
  absl::MutexLock lock(&mutex_);
  for (const StoreChange& change : table_.Expire(executor_->Now())) Publish(change);
}

StoreService::WatcherId StoreService::AddWatcher(const std::string& prefix, std::function<void(const StoreChange&)> on_change) {
  absl::MutexLock lock(&mutex_);
  for (const StoreChange& entry : table_.Snapshot(prefix)) on_change(entry);
  const WatcherId id = next_watcher_++;
  watchers_.emplace(id, Watcher{prefix, std::move(on_change)});
  return id;
}

void StoreService::RemoveWatcher(WatcherId id) {
  absl::MutexLock lock(&mutex_);
  watchers_.erase(id);
}

StoreChange StoreService::Get(const std::string& key) {
  absl::MutexLock lock(&mutex_);
  return table_.Get(key);
}

bool StoreService::BeginWatch(const std::string& caller) {
  absl::MutexLock lock(&mutex_);
  size_t& watches = watches_[caller];
  if (watches >= kWatchesPerCallerMax) return false;
  ++watches;
  return true;
}

void StoreService::EndWatch(const std::string& caller) {
  absl::MutexLock lock(&mutex_);
  if (const auto found = watches_.find(caller); found != watches_.end() && --found->second == 0) watches_.erase(found);
}

void StoreService::Publish(const StoreChange& change) {
  for (const auto& [id, watcher] : watchers_)
    if (change.key.compare(0, watcher.prefix.size(), watcher.prefix) == 0) watcher.on_change(change);
}

void LocalStore::Start(const std::string& prefix, Callbacks callbacks) {
  callbacks.on_state("serving");
  watcher_ = service_->AddWatcher(prefix, [executor = executor_, alive = alive_, callbacks](const StoreChange& change) {
    executor->Post([alive, callbacks, change] {
      if (*alive) callbacks.on_change(change);
    });
  });
  Tick();
}

void LocalStore::Put(const std::string& key, const std::string& value, int64_t lease_ms) {
  entries_[key] = {value, lease_ms};
  (void)service_->PutEntry(key, value, lease_ms);  // fails only beyond limits that our own few keys are far from
}

void LocalStore::Tick() {
  for (const auto& [key, entry] : entries_) (void)service_->PutEntry(key, entry.value, entry.lease_ms);
  service_->Expire();
  timer_ = executor_->RunAfter(executor_->UntilNext(kExpireInterval), [this, alive = alive_] {
    if (*alive) Tick();
  });
}

void LocalStore::Stop() {
  *alive_ = false;
  if (timer_ != 0) executor_->Cancel(std::exchange(timer_, 0));
  if (watcher_ != 0) service_->RemoveWatcher(std::exchange(watcher_, 0));
}

}  // namespace r2cc::daemon
