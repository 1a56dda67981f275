// The two networks of the cluster: the rails, which carry probes and a job's data, and the management network, which carries everything
// else. What a port or a path carries, the simulation's network decides for all of them.
#ifndef R2CC_TESTS_CLUSTER_NETWORK_H_
#define R2CC_TESTS_CLUSTER_NETWORK_H_

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/executor.h"
#include "health/io/datagram.h"
#include "tests/cluster/traffic.h"
#include "tests/sim/network.h"

namespace r2cc::cluster {

// A uniform choice between the two for each message.
struct Latency {
  Nanos least = 0;
  Nanos most = 0;
};

struct NetworkOptions {
  Nanos probe_jitter = 40'000;              // of a probe, beyond the delay of its path
  Latency management = {50'000, 400'000};   // one way, with the kernel's and gRPC's share
  Latency commit = {1'000'000, 5'000'000};  // of the store: its log is on disk on most of its members
  double probe_loss = 1e-4;
  bool full_fabric = false;  // rail k reaches other rails, too
};

// The store's place in the management network.
constexpr int kStoreNode = -1;

class Network {
 public:
  // Rail k of node n is the port {n, k} of `ports`, and its management interface {n, kOobRail}. `ports` outlives it.
  Network(sim::Network* ports, const NetworkOptions& options, int nodes, int rails)
      : ports_(ports),
        timeline_(ports->timeline()),
        options_(options),
        rails_(rails),
        ports_dead_(static_cast<size_t>(nodes * rails)),
        side_(static_cast<size_t>(nodes)),
        off_(static_cast<size_t>(nodes)) {}

  // "10.RAIL.HIGH.LOW".
  static std::string RailAddress(int node, int rail);

  // Nothing passes the port of `node` on `rail`, in either direction.
  void SetPortDead(int node, int rail, bool dead);
  // Without power: neither network carries anything of it.
  void SetOff(int node, bool off) { off_[static_cast<size_t>(node)] = off; }
  // The process there is stopped: what its kernel takes for it waits.
  void SetPaused(int node, bool paused);
  // Nodes talk to those of the same side of the management network only; the store is on side 0.
  void SetSide(int node, int side) { side_[static_cast<size_t>(node)] = side; }

  // What becomes of one probe: how long it takes, or nothing if it is lost.
  std::optional<Nanos> Rail(const health::DatagramAddress& from, const health::DatagramAddress& to);
  // The largest packet, with its headers, that passes from one to the other.
  size_t Limit(const health::DatagramAddress& from, const health::DatagramAddress& to) const;

  bool Reaches(int from, int to) const;
  // A ping to the process there comes back.
  bool Answers(int from, int to) const { return Reaches(from, to) && !held_.contains(to); }
  Nanos ManagementLatency() { return Draw(options_.management); }
  Nanos CommitLatency() { return Draw(options_.commit); }

  // One direction of one connection: nothing overtakes.
  struct Lane {
    Nanos last = 0;
  };
  // Runs `arrive` when the message has arrived; never if the way is cut.
  void Send(Kind kind, size_t bytes, int from, int to, Lane* lane, Task arrive);

  const Counts& counts() const { return counts_; }
  uint64_t Random() { return timeline_->random().Next(); }
  sim::Timeline* timeline() const { return timeline_; }

 private:
  bool IsOff(int node) const { return node >= 0 && off_[static_cast<size_t>(node)]; }
  int Side(int node) const { return node < 0 ? 0 : side_[static_cast<size_t>(node)]; }
  Nanos Draw(const Latency& latency) { return timeline_->random().Between(latency.least, latency.most); }

  sim::Network* const ports_;
  sim::Timeline* const timeline_;
  const NetworkOptions options_;
  const int rails_;
  std::vector<bool> ports_dead_;
  std::vector<int> side_;
  std::vector<bool> off_;
  std::map<int, std::vector<Task>> held_;  // by node whose process is stopped
  std::set<sim::Port> given_up_;           // see bug.h
  Counts counts_;
};

}  // namespace r2cc::cluster

#endif  // R2CC_TESTS_CLUSTER_NETWORK_H_
