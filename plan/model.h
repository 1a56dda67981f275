// Defines the planner's input and output: plain values, no protobuf, no abseil. The daemon converts its view to a ClusterModel and a
// Plan to a page.
#ifndef R2CC_PLAN_MODEL_H_
#define R2CC_PLAN_MODEL_H_

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/core/epoch.h"

namespace r2cc::plan {

// The numbers are part of the page format.
enum class PlannedState : uint8_t {
  kHealthy = 0,
  kDegraded = 1,  // carries traffic, below its due
  kSuspect = 2,   // under proof; carries traffic until the proof
  kFailed = 3,    // dead: what is in flight on it is abandoned at once
  kProving = 4,   // back again, not trusted yet
  kDrained = 5,   // an operator's setting: no new traffic, in-flight data completes
  kUncabled = 6,  // nobody has put a cable in yet; on the page kFailed, which means the same to a job
  // An operator's setting: in-flight data is sent again elsewhere, at once; on the page kFailed, because plugins of all releases do that
  // then.
  kDrainedNow = 7,
};

constexpr uint16_t kFullWeightPermille = 1000;

struct NicModel {
  std::string name;  // as in NODE/NIC
  PlannedState state = PlannedState::kHealthy;
  uint64_t rate_bits_per_s = 0;                             // negotiated or shaped rate; 0 = unknown
  uint16_t operator_weight_permille = kFullWeightPermille;  // `r2ccctl nic weight`
  uint16_t share_permille = kFullWeightPermille;            // what it moves, compared with its node's best, as jobs report it
  std::vector<std::string> drained_jobs = {};               // `r2ccctl nic drain --job`, in order
  bool on_purpose = false;                                  // an operator took it away at once: fail-nic, or a drain with --now
};

// Reports of jobs lower a weight no further than to this. A tenant can be wrong or lie about a NIC that it shares with others. A limit
// above what a slow NIC moves costs nothing, because within the limits rails pull chunks as they have room.
constexpr uint16_t kReportedWeightMinPermille = 500;

// The distance of a limit above the measured share of a NIC or a link: a NIC that is limited to what it moved shows no more than that,
// whether it could move more or not.
constexpr uint16_t kCeilingAboveSharePermille = 100;
constexpr uint16_t CapOfShare(uint16_t share_permille) {
  return static_cast<uint16_t>(std::min(share_permille + kCeilingAboveSharePermille, +kFullWeightPermille));
}

struct NodeModel {
  std::string name;
  std::vector<NicModel> nics;
};

// A path that carries nothing although the NICs at both its ends carry traffic to others: in neither direction.
struct BrokenPath {
  std::string node;
  std::string nic;
  std::string peer_node;  // later than `node`
  std::string peer_nic;

  friend auto operator<=>(const BrokenPath&, const BrokenPath&) = default;
};
// Paths of one plan: beyond it the plugins find them alone, as they do without a daemon.
constexpr size_t kBrokenPathsMax = 4096;
// Drains of single jobs on one page: a NIC has 8 at most, so this is every NIC of 64 nodes with 8 of them.
constexpr size_t kJobDrainsMax = 4096;

struct ClusterModel {
  std::vector<NodeModel> nodes;
  std::vector<BrokenPath> broken_paths = {};  // in any order
};

// The verdict on one NIC and what to do about it.
struct PlannedNic {
  std::string node;
  std::string nic;
  PlannedState state = PlannedState::kHealthy;
  // Cap on this NIC's share, relative to the NIC with the largest weight of the same node: with weights 1000, 1000, 500 the
  // third carries at most half the bytes of the first. 0: forbidden. Within the caps rails pull chunks as they have room.
  uint16_t weight_permille = kFullWeightPermille;
  // Jobs, by name, for which it is DRAINED independent of its state for the others; in order, empty if it carries nothing anyway.
  std::vector<std::string> drained_jobs = {};
  // A loss of a job on it is no fault that the job survived.
  bool on_purpose = false;

  friend bool operator==(const PlannedNic&, const PlannedNic&) = default;
};

// A whole plan, never a delta.
struct Plan {
  Epoch epoch;
  std::vector<PlannedNic> nics;
  std::vector<BrokenPath> broken_paths = {};  // forbidden, each once, in order; at most kBrokenPathsMax

  // Whether it is the same plan for the jobs.
  bool HasSameContent(const Plan& other) const { return nics == other.nics && broken_paths == other.broken_paths; }
};

}  // namespace r2cc::plan

#endif  // R2CC_PLAN_MODEL_H_
