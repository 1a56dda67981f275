// Chooses the schedule of an AllReduce, with the reason: the one with the smallest predicted time. A pure function; a new decision at 1,024
// members takes well under 50 ms, one that was made before well under a microsecond (Chooser); the test measures both.
#ifndef R2CC_PLAN_COLLECTIVE_CHOOSE_H_
#define R2CC_PLAN_COLLECTIVE_CHOOSE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "plan/schedule/schedule.h"

namespace r2cc::plan {

enum class ScheduleKind : uint8_t { kRing, kBalance, kR2ccAllReduce, kRecursive, kOptcc, kDirect };
const char* ScheduleName(ScheduleKind kind);  // "ring", "balance", "r2cc-allreduce", "recursive", "optcc", "direct"

// The input of the choice besides the size: one member a server.
struct Ports {
  std::vector<double> bytes_per_s;  // what each member has left, each way, all rails together; > 0, at least two members
  double healthy_bytes_per_s = 0;   // what one without a fault has; no member has more
  // Equal rails that make up a healthy member's bandwidth. Only "ring" asks: it ties a channel to each and does not share them.
  uint32_t rails = 1;
  double step_latency_s = 0;
  double step_overhead_bytes = 0;
};

// The number of rails that a member with this bandwidth has left, of ports.rails; at least one.
uint32_t RailsLeft(const Ports& ports, double bytes_per_s);

constexpr uint32_t kSegmentsMax = 32;  // k of OptCC and direct
constexpr uint32_t kChunksMax = 64;    // K of R2CC-AllReduce and recursive

struct Candidate {
  ScheduleKind kind = ScheduleKind::kRing;
  uint32_t segments = 1;      // k of OptCC and direct, K of R2CC-AllReduce and recursive
  double y = 0;               // R2CC-AllReduce's
  double time_s = 0;          // predicted
  double ratio_to_ring = 0;   // to FaultFreeRingTime()
  double ratio_to_bound = 0;  // to LowerBoundTime()
  std::string note;           // what limits it, for people
};

struct Decision {
  Candidate chosen;
  std::vector<Candidate> candidates;  // every schedule that can be used here, each with its best parameters, fastest first
  double bound_s = 0;
  double ring_s = 0;  // fault-free
  std::string why;    // one line
};

Decision Choose(uint64_t bytes, const Ports& ports, uint32_t segments_max = kSegmentsMax);

// The step list of a candidate of Choose(bytes, ports).
std::unique_ptr<Schedule> MakeCandidate(const Candidate& candidate, uint64_t bytes, const Ports& ports);

// Remembers decisions for one set of ports. One thread.
class Chooser {
 public:
  explicit Chooser(Ports ports);
  // Valid until the next call.
  const Decision& Get(uint64_t bytes);

 private:
  static constexpr size_t kDecisionsMax = 1024;

  Ports ports_;
  std::unordered_map<uint64_t, Decision> made_;
};

}  // namespace r2cc::plan

#endif  // R2CC_PLAN_COLLECTIVE_CHOOSE_H_
