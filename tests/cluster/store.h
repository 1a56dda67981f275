// A store as etcd is one: durable, puts that take a commit, a lease per node, all read and then watched. The contents are the production
// StoreTable, the queue of puts is the production PutQueue; what is emulated is etcd's conversation.
#ifndef R2CC_TESTS_CLUSTER_STORE_H_
#define R2CC_TESTS_CLUSTER_STORE_H_

#include <map>
#include <memory>
#include <string>

#include "daemon/core/store_table.h"
#include "daemon/io/store.h"
#include "daemon/rpc/put_queue.h"
#include "daemon/rpc/reconnect.h"
#include "tests/cluster/network.h"
#include "tests/cluster/sim_executor.h"

namespace r2cc::cluster {

class StoreClient;

class StoreServer {
 public:
  explicit StoreServer(Network* network);

  // Down: its connections break at once. What it held stays, and leases begin anew when it is up again, as etcd's do with a new leader.
  void SetUp(bool up);
  bool up() const { return up_; }

 private:
  friend class StoreClient;
  // Reads all, then watches. The client leaves before it ends.
  void Watch(StoreClient* client, const std::string& prefix);
  void Leave(StoreClient* client);
  // `done` runs after the commit.
  void Put(const std::string& key, const std::string& value, int64_t lease_ms, Task done);
  void KeepAlive(const std::string& key, int64_t lease_ms);
  void Publish(const daemon::StoreChange& change);
  void Expire();

  Network* const network_;
  sim::Timeline* const timeline_;
  daemon::StoreTable table_;
  std::map<std::string, int64_t> lease_ms_;  // by key
  struct Watcher {
    StoreClient* client = nullptr;
    Network::Lane lane;
  };
  std::map<int, Watcher> watchers_;  // by node: a run's order is the same each time
  Nanos committed_ = 0;              // when the last put under way is: one log, one order
  bool up_ = false;
};

// The client of one run of one daemon.
class StoreClient final : public daemon::Store {
 public:
  // All outlive it.
  StoreClient(int node, SimExecutor* executor, Network* network, StoreServer* server);
  ~StoreClient() override { Stop(); }

  void Start(const std::string& prefix, Callbacks callbacks) override;
  void Put(const std::string& key, const std::string& value, int64_t lease_ms) override;
  void Stop() override;

 private:
  friend class StoreServer;
  // Runs `task` if the connection of now is there still.
  Task Mine(Task task) const;
  void Connect();
  void OnConnected();
  void SetState(const std::string& state);
  void Lose(const std::string& why);
  void SendPut(const std::string& key, const std::string& value, int64_t lease_ms, std::function<void(bool)> done);
  void Tick();

  const int node_;
  SimExecutor* const executor_;
  Network* const network_;
  StoreServer* const server_;
  std::string prefix_;
  Callbacks callbacks_;
  daemon::PutQueue puts_;
  std::map<std::string, int64_t> leases_;
  ExponentialBackOff backoff_ = daemon::ReconnectBackOff();
  Network::Lane lane_;
  std::string state_;
  bool connected_ = false;
  bool running_ = false;
  // False when this connection has ended: its messages are not heard any more.
  std::shared_ptr<bool> session_ = std::make_shared<bool>(false);
  Nanos kept_alive_ = 0;
  Nanos unreachable_since_ = 0;
};

}  // namespace r2cc::cluster

#endif  // R2CC_TESTS_CLUSTER_STORE_H_
