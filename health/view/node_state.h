// Describes the state of a node as its own daemon publishes it. Plain values: made by NodeHealth, exchanged by daemons, merged by
// ClusterView.
#ifndef R2CC_HEALTH_VIEW_NODE_STATE_H_
#define R2CC_HEALTH_VIEW_NODE_STATE_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/core/clock.h"
#include "base/core/epoch.h"
#include "health/evidence/evidence.h"
#include "health/evidence/nic_identity.h"
#include "health/evidence/probe_public_key.h"
#include "health/view/nic_state.h"
#include "health/view/pair_reports.h"

namespace r2cc::health {

constexpr uint16_t kFullWeightPermille = 1000;

// Default, least and greatest length of a drill. One that is forgotten must not cost a NIC forever, and one below a second shows nothing.
constexpr Nanos kDrillDefault = 600 * kNanosPerSecond;
constexpr Nanos kDrillMin = kNanosPerSecond;
constexpr Nanos kDrillMax = 24 * 3600 * kNanosPerSecond;

// Jobs that one NIC may be drained for: each is an entry of every node's page.
constexpr size_t kDrainedJobsMax = 8;

struct NicStatus {
  NicIdentity identity;
  NicState state = NicState::kProving;
  std::string reason;
  Nanos since = 0;               // this node's CLOCK_MONOTONIC; a remote node's is converted on its way in
  uint64_t rate_bits_per_s = 0;  // the configured or the kernel's, whichever is less; 0: unknown
  bool link_up = false;
  bool drained = false;
  bool drained_now = false;  // and what is in flight is not waited for
  bool drill_failed = false;
  Nanos drill_until = 0;  // when the drill ends automatically, on the clock of `since`; 0: there is none
  uint16_t operator_weight_permille = kFullWeightPermille;
  uint16_t share_permille = kFullWeightPermille;  // what it moves, compared with its node's best NIC, as jobs report it
  uint32_t flaps_total = 0;
  uint16_t probe_port = 0;  // where it takes rail probes; 0: nowhere
  bool port_dead = false;   // its daemon's verdict on its silence: it explains all silence towards it
  // The largest packet that it takes as a rail probe, in bytes with the IP header; 0: it takes small ones only, as release 0.2.0.
  uint32_t probe_packet_max = 0;
  uint32_t mtu = 0;                            // of its interface, by this node's kernel; 0: not known, or another node's NIC
  std::string probe_trouble;                   // why its probes are inconclusive, one line; empty: they are conclusive
  std::vector<std::string> drained_jobs = {};  // jobs that are to keep off it, by name, in order

  // An operator keeps all traffic off it, at once.
  bool on_purpose() const { return drill_failed || drained_now; }

  friend bool operator==(const NicStatus&, const NicStatus&) = default;
};

// Reports of one node; more are refused.
constexpr size_t kPairReportsMax = 1024;

// A node's end of a queue pair that probes a pair by RDMA. Only the probe reads `end` (health/io/rdma_end.h).
struct RdmaEndReport {
  std::string nic;
  NicKey peer;
  std::string end;

  friend bool operator==(const RdmaEndReport&, const RdmaEndReport&) = default;
};
// Ends of one node; more are refused, as are longer ends. The length leaves room for what a later release adds.
constexpr size_t kRdmaEndsMax = 64;
constexpr size_t kRdmaEndBytesMax = 64;

struct NodeState {
  std::string node;
  Epoch epoch;
  NodeStatus status = NodeStatus::kInitializing;
  std::vector<NicStatus> nics;
  uint64_t probe_nonce = 0;  // rail probes to it carry this; 0: it takes none
  ProbePublicKey probe_key{};
  PairReports pairs;  // those that matter to others: silent, or used by jobs
  std::vector<RdmaEndReport> rdma_ends;

  const NicStatus* Find(const std::string& nic) const;
  // Its end towards `peer`; null: it has none.
  const std::string* RdmaEndOf(const std::string& nic, const NicKey& peer) const;
  // Whether it means the same for a plan: the other fields are for comparing probes.
  bool PlansAs(const NodeState& other) const;
  // Whether its NICs take probes at the same places.
  bool ProbedAs(const NodeState& other) const;
  friend bool operator==(const NodeState&, const NodeState&) = default;
};

// The part of a node's state that comes from its rail probes. Other daemons need it to probe the node and to compare pairs.
struct RailReport {
  struct Nic {
    uint16_t probe_port = 0;
    bool port_dead = false;
    std::string trouble = {};
    uint32_t packet_max = 0;

    friend bool operator==(const Nic&, const Nic&) = default;
  };
  uint64_t probe_nonce = 0;
  ProbePublicKey probe_key{};
  std::map<std::string, Nic> nics;  // by name; one that is missing takes no probes
  PairReports pairs;

  friend bool operator==(const RailReport&, const RailReport&) = default;
};

// `own` with what its rail probes add.
NodeState WithRails(NodeState own, RailReport rails);

// The operator's setting for one NIC: a daemon keeps it over restarts.
struct OperatorSetting {
  bool drained = false;
  bool drill_failed = false;
  uint16_t weight_permille = kFullWeightPermille;
  Nanos drill_until = 0;                    // when the drill ends, on this node's CLOCK_MONOTONIC
  std::set<std::string> drained_jobs = {};  // jobs that are to keep off it, by name
  // After a restart of the daemon nothing is in flight from before, so this is not kept: the NIC stays drained.
  bool drained_now = false;

  friend bool operator==(const OperatorSetting&, const OperatorSetting&) = default;
};
using OperatorSettings = std::map<std::string, OperatorSetting>;  // by NIC; a NIC without any is left out

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_VIEW_NODE_STATE_H_
