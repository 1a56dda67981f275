// A cluster of whole daemons in virtual time: one process, one thread, one event queue; a seed replays it.
#ifndef R2CC_TESTS_CLUSTER_CLUSTER_H_
#define R2CC_TESTS_CLUSTER_CLUSTER_H_

#include <functional>
#include <memory>
#include <set>
#include <vector>

#include "tests/cluster/node.h"

namespace r2cc::cluster {

struct ClusterOptions {
  int nodes = 64;
  int rails = 8;
  int rack_nodes = 32;
  uint64_t seed = 1;
  NetworkOptions network;
};

class Cluster {
 public:
  // Every node is in a job with all others and in one with its rack. In a job each node talks to its neighbours on a ring and in a binary
  // tree, as NCCL's collectives do, over all rails.
  explicit Cluster(const ClusterOptions& options);

  // Starts all daemons, then the store, and waits until each page has each NIC and nothing changes any more. False: it did not come to
  // that within `limit`.
  bool Start(Nanos limit);

  void Run(Nanos time) { timeline_.RunUntil(Now() + time); }
  // True when `done` was; false: `limit` has passed.
  bool RunUntil(const std::function<bool()>& done, Nanos limit);
  // Until no daemon has had anything new to say for a second.
  bool RunUntilQuiet(Nanos limit);
  Nanos Now() const { return timeline_.now(); }

  std::vector<Nic> AllNics() const;
  std::vector<Nic> NicsOf(const std::set<int>& nodes) const;
  // The nodes with a daemon, without `without`.
  std::set<int> Running(const std::set<int>& without = {}) const;
  std::set<int> Rack(int rack) const;

  // The port's link goes, and the kernel tells; or nothing passes any more, and nobody tells.
  void SetLink(const Nic& nic, bool up);
  void SetSilent(const Nic& nic, bool silent) { network_.SetPortDead(nic.node, nic.rail, silent); }
  void SetPower(int node, bool on);

  Node& node(int number) { return *nodes_[static_cast<size_t>(number)]; }
  Network& network() { return network_; }
  StoreServer& store() { return store_; }
  Watch& watch() { return watch_; }
  const ClusterOptions& options() const { return options_; }
  size_t connections() const;

 private:
  void AddJob(const std::vector<int>& members);

  const ClusterOptions options_;
  sim::Timeline timeline_;
  sim::Network ports_{&timeline_};
  Network network_;
  SimExecutor wires_{&timeline_, {}};
  health::FakeDatagramNet datagrams_{&wires_};
  PeerDirectory directory_{&network_};
  StoreServer store_{&network_};
  Watch watch_;
  std::vector<std::unique_ptr<Node>> nodes_;
};

}  // namespace r2cc::cluster

#endif  // R2CC_TESTS_CLUSTER_CLUSTER_H_
