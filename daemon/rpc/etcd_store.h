// Implements the store over an etcd cluster, with etcd 3's gRPC interface.
//
// One connection at a time: the entries under the prefix are read page by page at one revision, then watched from the next one, and this
// node's own entries depend on a lease that is kept alive. The end of any of these ends the connection, and another begins, at the next
// endpoint, after a back-off. So compaction and a change of etcd's leader need no path of their own: all is read again.
#ifndef R2CC_DAEMON_RPC_ETCD_STORE_H_
#define R2CC_DAEMON_RPC_ETCD_STORE_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/executor.h"
#include "daemon/io/store.h"
#include "daemon/rpc/bidi_call.h"
#include "daemon/rpc/call_count.h"
#include "daemon/rpc/channel.h"
#include "daemon/rpc/put_queue.h"
#include "daemon/rpc/reconnect.h"
#include "proto/etcd.grpc.pb.h"

namespace r2cc::daemon {

class EtcdStore final : public Store {
 public:
  // `endpoints`: host:port, at least one. `executor` (the core's) outlives the store.
  EtcdStore(Executor* executor, const std::vector<std::string>& endpoints, const std::shared_ptr<grpc::ChannelCredentials>& credentials);
  // Waits until every call has ended: as long as one that etcd does not answer may take.
  ~EtcdStore() override;

  void Start(const std::string& prefix, Callbacks callbacks) override;
  void Put(const std::string& key, const std::string& value, int64_t lease_ms) override;
  void Stop() override;

 private:
  using WatchCall = BidiCall<etcdserverpb::WatchRequest, etcdserverpb::WatchResponse>;
  using KeepAliveCall = BidiCall<etcdserverpb::LeaseKeepAliveRequest, etcdserverpb::LeaseKeepAliveResponse>;
  using Poster = std::function<void(Task)>;

  struct Endpoint {
    std::string address;
    std::unique_ptr<etcdserverpb::KV::Stub> kv;
    std::unique_ptr<etcdserverpb::Watch::Stub> watch;
    std::unique_ptr<etcdserverpb::Lease::Stub> lease;
  };
  // Entries of one lease time hang on one lease.
  struct Lease {
    int64_t id = 0;      // 0: not granted yet
    Nanos asked = 0;     // to stay, the last time
    Nanos answered = 0;  // that it does
  };

  // Posts tasks to the core's thread while `*session`.
  Poster MakePoster(const std::shared_ptr<bool>& session) const;
  template <typename Reply, typename Request, typename Begin>
  void Call(const Request& request, Begin begin, Poster post, std::function<void(const grpc::Status&, const Reply&)> done);

  void Connect();
  void ReadPage();
  void OnPage(const grpc::Status& status, const etcdserverpb::RangeResponse& page);
  // Reports the changes, some in each turn of the core, and then runs `done`.
  void HandOver(std::shared_ptr<const std::vector<StoreChange>> changes, size_t from, Task done);
  void StartWatch();
  void OnWatch(const etcdserverpb::WatchResponse& reply);
  void OnConnected();
  // Ends this connection; another one begins later.
  void Lose(const std::string& why);
  void EndCalls();

  void SendPut(const std::string& key, const std::string& value, int64_t lease_ms, std::function<void(bool)> done);
  void OnPut(const grpc::Status& status);
  void Grant(int64_t lease_ms);
  void OnKeepAlive(const etcdserverpb::LeaseKeepAliveResponse& reply);
  void KeepLeases();
  void Tick();
  void SetState(const std::string& state);
  Endpoint& endpoint() { return endpoints_[endpoint_]; }

  Executor* const executor_;
  const std::shared_ptr<CallCount> calls_;
  std::vector<Endpoint> endpoints_;
  size_t endpoint_ = 0;
  std::string prefix_;
  Callbacks callbacks_;
  PutQueue puts_;
  std::string state_;
  ExponentialBackOff backoff_ = ReconnectBackOff();
  TimerId reconnect_timer_ = 0;
  TimerId tick_timer_ = 0;

  // State of the present connection:
  bool connected_ = false;  // it is up
  std::string page_key_;
  int64_t page_revision_ = 0;        // 0: the first page is asked for
  int64_t page_entries_ = 0;         // of a page; halved where that is too many bytes
  std::map<int64_t, Lease> leases_;  // by lease_ms
  std::shared_ptr<WatchCall> watch_;
  std::shared_ptr<KeepAliveCall> keep_alive_;
  // False when this connection has ended, and when the store has; core thread only, shared with tasks that are still posted then.
  std::shared_ptr<bool> session_ = std::make_shared<bool>(false);
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_RPC_ETCD_STORE_H_
