// One machine of the cluster, and its daemon: the production Wiring over fakes.
#ifndef R2CC_TESTS_CLUSTER_NODE_H_
#define R2CC_TESTS_CLUSTER_NODE_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/io/fake_attach_server.h"
#include "daemon/io/fake_files.h"
#include "daemon/wiring.h"
#include "health/io/fake_datagram.h"
#include "health/io/fake_fabric.h"
#include "health/io/fake_link_watch.h"
#include "health/io/fake_sysfs.h"
#include "tests/cluster/peers.h"
#include "tests/cluster/store.h"
#include "tests/cluster/watch.h"

namespace r2cc::cluster {

// What all nodes share. All outlive them.
struct Surroundings {
  FakeExecutor* queue;
  Network* network;
  health::FakeDatagramNet* datagrams;
  PeerDirectory* directory;
  StoreServer* store;
  Watch* watch;
};

// A job as one node's daemon knows it: the nodes that it talks to from here, over all rails.
using JobPeers = std::vector<int>;

class Node {
 public:
  Node(int number, int rails, Surroundings around);
  ~Node() { End(); }
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  // Begins a life of the daemon; its jobs attach at once.
  void Start();
  // Ends it. Its kernel closes what it had open.
  void End();
  // The machine is imaged anew: its files are gone, and its clock is `ahead` of what it was.
  void Reimage(Nanos clock_ahead);
  bool running() const { return daemon_ != nullptr; }

  void AddJob(JobPeers peers) { jobs_.push_back(std::move(peers)); }
  const std::vector<JobPeers>& jobs() const { return jobs_; }
  // What the kernel says of a NIC's link.
  void SetLink(int rail, bool up);

  // Hands the alarms of its status to `hear`, a moment later.
  void AskAlarms(std::function<void(std::vector<std::string>)> hear) const {
    daemon_->wiring->backend().Ask(v1::StatusRequest(), daemon::Caller(),
                                   [hear = std::move(hear)](const absl::StatusOr<v1::StatusReply>& reply) {
                                     if (reply.ok()) hear({reply->alarms().begin(), reply->alarms().end()});
                                   });
  }

  // Streams with other daemons.
  size_t connections() const { return daemon_ == nullptr ? 0 : daemon_->peers.connections(); }

 private:
  class Page final : public daemon::PageSink {
   public:
    explicit Page(const Node* node) : node_(node) {}
    absl::Status Publish(const plan::Plan& plan, const std::string& own_node, Nanos now) override;
    std::vector<plan::PageConflict> conflicts() const override { return {}; }
    void Heartbeat(Nanos) override {}
    void LastWord(Nanos) override {}

   private:
    const Node* const node_;
  };
  // Sees what the daemon says of its node on its way to the store.
  class WatchedStore final : public daemon::Store {
   public:
    WatchedStore(const Node* node, Life* life) : node_(node), client_(node->number_, life, node->around_.network, node->around_.store) {}
    void Start(const std::string& prefix, Callbacks callbacks) override { client_.Start(prefix, std::move(callbacks)); }
    void Put(const std::string& key, const std::string& value, int64_t lease_ms) override;
    void Stop() override { client_.Stop(); }

   private:
    const Node* const node_;
    StoreClient client_;
  };
  struct Daemon {
    explicit Daemon(Node* node);
    ~Daemon();
    Life life;
    health::FakeLinkWatch links;
    health::FakeDatagrams datagrams;
    health::FakeFabric fabric;
    daemon::FakeAddresses addresses;
    Page page;
    daemon::FakeAttachServer attach;
    Peers peers;
    WatchedStore store;
    std::unique_ptr<daemon::Wiring> wiring;
  };
  daemon::World WorldOf(Daemon* daemon);
  daemon::Config Config() const;
  void AttachJobs();

  const int number_;
  const int rails_;
  const Surroundings around_;
  const Nanos ahead_;  // of its monotonic clock
  Nanos clock_ahead_ = 0;
  int boots_ = 1;
  std::vector<JobPeers> jobs_;
  std::vector<bool> links_up_;
  daemon::FakeFiles files_;
  health::FakeSysfs sysfs_;
  const health::FakeTopology topology_;
  std::unique_ptr<Daemon> daemon_;
};

}  // namespace r2cc::cluster

#endif  // R2CC_TESTS_CLUSTER_NODE_H_
