// Names the schedule of a group in numbers that its members exchange. Every member makes the same step list from them, for any size.
#ifndef R2CC_NETPLUGIN_COLLNET_PLAN_SPEC_H_
#define R2CC_NETPLUGIN_COLLNET_PLAN_SPEC_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "plan/schedule/schedule.h"

namespace r2cc::collnet {

constexpr uint32_t kMembersMax = 4096;

// Whole numbers, so that rounding happens once, at the planner. A part is a number of kWhole-ths.
struct PlanSpec {
  static constexpr uint32_t kWhole = 1 << 20;
  static constexpr uint32_t kPiecesMax = 64;
  static constexpr uint64_t kPieceBytesMin = 4096;
  enum class Kind : uint8_t { kDirect = 1, kRing = 2, kR2ccAllReduce = 3, kOptcc = 4, kRecursive = 5 };

  Kind kind = Kind::kDirect;
  // Into at most this many segments, or chunks, a vector is cut, but none smaller than piece_bytes.
  uint32_t pieces_max = 1;
  uint64_t piece_bytes = kPieceBytesMin;
  // kDirect: what each member owns; together they are kWhole. kRecursive: each member's bandwidth, of kWhole.
  std::vector<uint32_t> parts;
  // kR2ccAllReduce, kOptcc: the degraded member, and the part of its bandwidth that it has kept.
  uint32_t degraded = 0;
  uint32_t kept = kWhole;
  uint32_t y = 0;  // kR2ccAllReduce: the part that the others add up among themselves

  friend bool operator==(const PlanSpec&, const PlanSpec&) = default;
};

// Empty if MakeSchedule() may be called; otherwise the error, in one line. The spec is not trusted.
std::string CheckPlanSpec(const PlanSpec& spec, uint32_t members);

// Members do not all move the same amount: a member that has lost rails moves less. On a fabric that joins rail K only to rail K, the
// others can compensate for that only by what they send to each other on the rails that it has lost.
bool IsUneven(const PlanSpec& spec);

// One line, for people.
std::string Describe(const PlanSpec& spec);

// The same on all members. The vector has at least a byte.
std::unique_ptr<plan::Schedule> MakeSchedule(const PlanSpec& spec, uint32_t members, uint64_t bytes);

// The plan whose result does not depend on faults: direct owner shares in proportion to each member's capacity, in pieces of about
// `piece_bytes`. Members without capacity count as very slow.
//
// Only members that have a path to all others own anything, if there are any (`reach_all`; empty: all have). A member that owns nothing has
// no step with another that owns nothing. So no step needs a path that does not exist, and the sums have the same bits.
PlanSpec PlanFor(const std::vector<uint64_t>& bytes_per_s, uint64_t piece_bytes, const std::vector<bool>& reach_all = {});

}  // namespace r2cc::collnet

#endif  // R2CC_NETPLUGIN_COLLNET_PLAN_SPEC_H_
