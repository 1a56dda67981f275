#include "daemon/rpc/store_service.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/names.h"
#include "daemon/rpc/channel.h"

namespace r2cc::daemon {
namespace {

// Changes that one watcher may lag behind; then it is told to begin again from the present entries.
constexpr size_t kBacklogMax = 2 * StoreTable::kEntriesMax;
constexpr Nanos kExpireInterval = 250 * kNanosPerMs;

class WatchStream final : public grpc::ServerWriteReactor<v1::WatchReply> {
 public:
  WatchStream(StoreService* service, const std::string& prefix) : service_(service) {
    watcher_ = service_->AddWatcher(prefix, [this](const StoreChange& change) { Add(change); });
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
    service_->RemoveWatcher(watcher_);
    delete this;
  }

 private:
  void Add(const StoreChange& change) {
    absl::MutexLock lock(&mutex_);
    if (backlog_.size() >= kBacklogMax) {
      backlog_.clear();
      End(grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "this watcher reads too slowly; it begins again"));
      return;
    }
    if (finished_) return;
    backlog_.push_back(change);
    MaybeWrite();
  }

  void MaybeWrite() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (writing_ || finished_ || backlog_.empty()) return;
    StoreChange& change = backlog_.front();
    reply_.set_key(std::move(change.key));
    reply_.set_value(std::move(change.value));
    reply_.set_deleted(change.deleted);
    reply_.set_revision(change.revision);
    backlog_.pop_front();
    writing_ = true;
    StartWrite(&reply_);
  }

  void End(const grpc::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!std::exchange(finished_, true)) Finish(status);
  }

  StoreService* const service_;
  StoreService::WatcherId watcher_;
  absl::Mutex mutex_;
  std::deque<StoreChange> backlog_ ABSL_GUARDED_BY(mutex_);
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
  return new WatchStream(this, request->prefix());
}

absl::Status StoreService::PutEntry(const std::string& key, const std::string& value, int64_t lease_ms) {
  absl::MutexLock lock(&mutex_);
  const auto change = table_.Put(key, value, lease_ms, executor_->Now());
  if (change.ok() && change->has_value()) Tell(**change);
  return change.status();
}

void StoreService::Expire() {
  absl::MutexLock lock(&mutex_);
  for (const StoreChange& change : table_.Expire(executor_->Now())) Tell(change);
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

void StoreService::Tell(const StoreChange& change) {
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
