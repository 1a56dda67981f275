// The embedded store: one daemon's StoreTable, served to its peers over gRPC and to itself directly.
#ifndef R2CC_DAEMON_RPC_STORE_SERVICE_H_
#define R2CC_DAEMON_RPC_STORE_SERVICE_H_

#include <functional>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "base/executor.h"
#include "daemon/core/store_table.h"
#include "daemon/io/store.h"
#include "daemon/rpc/authenticator.h"
#include "proto/store.grpc.pb.h"

namespace r2cc::daemon {

// Thread-safe.
class StoreService final : public v1::Store::CallbackService {
 public:
  // `executor` gives the time; its thread calls Expire. `authenticator` judges callers from the network. `nodes`: the prefix of the keys of
  // nodes' views, each of which only its own node may put.
  StoreService(const Executor* executor, const Authenticator* authenticator, std::string nodes)
      : executor_(executor), authenticator_(authenticator), nodes_(std::move(nodes)) {}

  grpc::ServerUnaryReactor* Put(grpc::CallbackServerContext* context, const v1::PutRequest* request, v1::PutReply* reply) override;
  grpc::ServerWriteReactor<v1::WatchReply>* Watch(grpc::CallbackServerContext* context, const v1::WatchRequest* request) override;

  absl::Status PutEntry(const std::string& key, const std::string& value, int64_t lease_ms);
  // Removes entries whose lease has ended.
  void Expire();

  // `on_change` gets every present entry under `prefix` and then every change, in order, on the thread that makes it, with the service
  // locked: it only takes note. When RemoveWatcher returns it will not be called again.
  using WatcherId = uint64_t;
  // Watches of one node, or of one address without certificates. A node has one, and a second one while it connects again.
  static constexpr size_t kWatchesPerCallerMax = 64;
  WatcherId AddWatcher(const std::string& prefix, std::function<void(const StoreChange&)> on_change);
  void RemoveWatcher(WatcherId id);
  // The present value of `key`.
  StoreChange Get(const std::string& key);
  // A watch of `caller` begins; false: the caller has too many. And one ends.
  bool BeginWatch(const std::string& caller);
  void EndWatch(const std::string& caller);

 private:
  struct Watcher {
    std::string prefix;
    std::function<void(const StoreChange&)> on_change;
  };
  void Publish(const StoreChange& change) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Executor* const executor_;
  const Authenticator* const authenticator_;
  const std::string nodes_;
  absl::Mutex mutex_;
  StoreTable table_ ABSL_GUARDED_BY(mutex_);
  std::map<WatcherId, Watcher> watchers_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, size_t> watches_ ABSL_GUARDED_BY(mutex_);  // by caller
  WatcherId next_watcher_ ABSL_GUARDED_BY(mutex_) = 1;
};

// The store as the daemon that serves it sees it.
class LocalStore final : public Store {
 public:
  // Both outlive the store.
  LocalStore(Executor* executor, StoreService* service) : executor_(executor), service_(service) {}
  ~LocalStore() override { Stop(); }

  void Start(const std::string& prefix, Callbacks callbacks) override;
  void Put(const std::string& key, const std::string& value, int64_t lease_ms) override;
  void Stop() override;

 private:
  struct Entry {
    std::string value;
    int64_t lease_ms = 0;
  };
  void Tick();

  Executor* const executor_;
  StoreService* const service_;
  std::map<std::string, Entry> entries_;
  StoreService::WatcherId watcher_ = 0;
  TimerId timer_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_RPC_STORE_SERVICE_H_
