// The two networks of the cluster: the rails, which carry probes, and the management network, which carries everything else.
#ifndef R2CC_TESTS_CLUSTER_NETWORK_H_
#define R2CC_TESTS_CLUSTER_NETWORK_H_

#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/fake_executor.h"
#include "health/io/datagram.h"
#include "tests/cluster/traffic.h"

namespace r2cc::cluster {

// A uniform choice between the two for each message.
struct Latency {
  Nanos least = 0;
  Nanos most = 0;
};

struct NetworkOptions {
  Latency rail = {5'000, 60'000};           // one way, host to host
  Latency management = {50'000, 400'000};   // one way, with the kernel's and gRPC's share
  Latency commit = {1'000'000, 5'000'000};  // of the store: its log is on disk on most of its members
  double probe_loss = 1e-4;
};

// The store's place in the management network.
constexpr int kStoreNode = -1;

class Network {
 public:
  Network(FakeExecutor* queue, const NetworkOptions& options, int nodes, int rails, uint64_t seed)
      : queue_(queue),
        options_(options),
        rails_(rails),
        random_(seed),
        ports_dead_(static_cast<size_t>(nodes * rails)),
        side_(static_cast<size_t>(nodes)),
        off_(static_cast<size_t>(nodes)) {}

  // "10.RAIL.HIGH.LOW".
  static std::string RailAddress(int node, int rail);

  // Nothing passes the port of `node` on `rail`, in either direction.
  void SetPortDead(int node, int rail, bool dead) { ports_dead_[Port(node, rail)] = dead; }
  bool IsPortDead(int node, int rail) const { return ports_dead_[Port(node, rail)]; }
  // Without power: neither network carries anything of it.
  void SetOff(int node, bool off) { off_[static_cast<size_t>(node)] = off; }
  // Nodes talk to those of the same side of the management network only; the store is on side 0.
  void SetSide(int node, int side) { side_[static_cast<size_t>(node)] = side; }

  // What becomes of one probe: how long it takes, or nothing if it is lost.
  std::optional<Nanos> Rail(const health::DatagramAddress& from, const health::DatagramAddress& to);

  bool Reaches(int from, int to) const { return !IsOff(from) && !IsOff(to) && Side(from) == Side(to); }
  Nanos ManagementLatency() { return Draw(options_.management); }
  Nanos CommitLatency() { return Draw(options_.commit); }

  // One direction of one connection: nothing overtakes.
  struct Lane {
    Nanos last = 0;
  };
  // Runs `arrive` when the message has arrived; never if the way is cut.
  void Send(Kind kind, size_t bytes, int from, int to, Lane* lane, Task arrive);

  const Counts& counts() const { return counts_; }
  uint64_t Random() { return random_(); }

 private:
  size_t Port(int node, int rail) const { return static_cast<size_t>(node * rails_ + rail); }
  bool IsOff(int node) const { return node >= 0 && off_[static_cast<size_t>(node)]; }
  int Side(int node) const { return node < 0 ? 0 : side_[static_cast<size_t>(node)]; }
  Nanos Draw(const Latency& latency) {
    return latency.least + static_cast<Nanos>(random_() % static_cast<uint64_t>(latency.most - latency.least + 1));
  }

  FakeExecutor* const queue_;
  const NetworkOptions options_;
  const int rails_;
  std::mt19937_64 random_;
  std::vector<bool> ports_dead_;
  std::vector<int> side_;
  std::vector<bool> off_;
  Counts counts_;
};

}  // namespace r2cc::cluster

#endif  // R2CC_TESTS_CLUSTER_NETWORK_H_
