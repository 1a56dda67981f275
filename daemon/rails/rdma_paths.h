// Probes the rail pairs of this node by RDMA, too: a zero-byte write over a queue pair of its own leaves with each UDP ping of a pair. So
// the writes keep to the pings' budget and intervals, and no timer fires for them.
//
// The two daemons publish their ends in their views. A queue pair that failed cannot be used any more, and neither can its partner: both
// are made again (NextRdmaStep).
#ifndef R2CC_DAEMON_RAILS_RDMA_PATHS_H_
#define R2CC_DAEMON_RAILS_RDMA_PATHS_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/core/back_off.h"
#include "base/core/clock.h"
#include "health/evidence/pair_state.h"
#include "health/io/rdma_pairs.h"
#include "health/probe/rail_prober.h"
#include "health/probe/rdma_path_judge.h"
#include "health/probe/rdma_probe.h"
#include "health/view/cluster_view.h"
#include "health/view/node_state.h"

namespace r2cc::daemon {

// Until the next queue pair of a path. It costs a device some milliseconds, and the nodes a view each; longer, and a path that is whole
// again would wait for it: both ends have to.
constexpr Nanos kRdmaRenewMin = kNanosPerSecond;
constexpr Nanos kRdmaRenewMax = 5 * kNanosPerSecond;
// A device that has completed nothing for this time counts as dead: queue pairs fail after about a second.
constexpr Nanos kRdmaStuck = 5 * kNanosPerSecond;
// An end that is not needed any more answers for this time: until the peer has learnt that, perhaps through the store, its writes must not
// fail.
constexpr Nanos kRdmaRetire = 5 * kNanosPerSecond;

// Core thread only.
class RdmaPaths {
 public:
  struct Outputs {
    // The fault of the RDMA paths of this node's NIC, one line; empty: none.
    std::function<void(const std::string& nic, const std::string& why)> on_fault;
    // The result of Report() has changed.
    std::function<void()> on_report;
  };

  // `pairs`: null if there are no RDMA devices. It and the view outlive it. `seed`: of packet numbers, another in each run.
  RdmaPaths(std::string node, health::RdmaPairs* pairs, const health::ClusterView* view, uint64_t seed, Outputs outputs)
      : node_(std::move(node)), pairs_(pairs), view_(view), seed_(seed), outputs_(std::move(outputs)) {}
  ~RdmaPaths();
  RdmaPaths(const RdmaPaths&) = delete;
  RdmaPaths& operator=(const RdmaPaths&) = delete;

  // The active port of this node's NIC; nothing: it has none.
  void SetPort(const std::string& nic, const std::optional<health::RdmaPortName>& port, Nanos now);
  // The port that was last set.
  std::optional<health::RdmaPortName> PortOf(const std::string& nic) const {
    const auto found = ports_.find(nic);
    return found == ports_.end() ? std::nullopt : std::optional(found->second);
  }
  // The whole set of pairs that are probed. At most kRdmaEndsMax of them are by RDMA, active ones first.
  void SetTargets(const std::vector<health::RailTarget>& targets, Nanos now);
  // It leaves now.
  void OnPing(const health::RailPing& ping, Nanos now);

  // This node's ends.
  std::vector<health::RdmaEndReport> Report() const;

 private:
  struct Path {
    uint64_t incarnation = 0;  // of the peer's daemon
    health::RdmaPairs::Id id{};
    std::optional<health::RdmaEnd> end;  // nothing: it is being made
    // To the peer, last. It stays while a new one is to be made: a node without an end is one that takes no such probes.
    std::string reported;
    bool connecting = false;
    std::deque<Nanos> sent;  // of the writes that are outstanding
    ExponentialBackOff back_off{kRdmaRenewMin, kRdmaRenewMax};
    Nanos make_at = 0;
    health::RdmaPathJudge judge;
  };
  using Paths = std::map<health::PairKey, Path>;

  void Choose(Nanos now);
  void Make(const health::PairKey& key, Path* path, Nanos now);
  void Connect(const health::PairKey& key, Path* path, const health::RdmaEnd& peer);
  void Judge(Path* path, Nanos udp_answered_sent, Nanos now);
  void Write(Path* path, Nanos now);
  // Its end is of no use any more; another one is made when its time has come.
  void Abandon(Path* path);
  void Publish(Path* path);
  void ReportFault(const std::string& nic);
  // The path with this end; null: it is gone.
  Path* Find(const health::PairKey& key, health::RdmaPairs::Id id);
  uint32_t NextPsn();

  const std::string node_;
  health::RdmaPairs* const pairs_;
  const health::ClusterView* const view_;
  const uint64_t seed_;
  const Outputs outputs_;
  std::vector<health::RailTarget> targets_;
  std::map<std::string, health::RdmaPortName> ports_;
  Paths paths_;
  std::deque<std::pair<Nanos, health::RdmaPairs::Id>> retired_;  // when each is to be dropped
  std::map<std::string, std::string> reported_;                  // faults, by NIC
  uint64_t made_ = 0;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_RAILS_RDMA_PATHS_H_
