// Which schedule a group uses, as its members tell each other: numbers from which every member makes the same step list, for any size.
#ifndef R2CC_NETPLUGIN_COLLNET_PLAN_SPEC_H_
#define R2CC_NETPLUGIN_COLLNET_PLAN_SPEC_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "plan/schedule/schedule.h"

namespace r2cc::collnet {

constexpr uint32_t kMembersMax = 4096;

// Whole numbers: what is rounded is rounded once, by whoever plans. A part is so many of kWhole.
struct PlanSpec {
  static constexpr uint32_t kWhole = 1 << 20;
  static constexpr uint32_t kPiecesMax = 64;
  static constexpr uint64_t kPieceBytesMin = 4096;
  enum class Kind : uint8_t { kDirect = 1, kRing = 2, kR2ccAllReduce = 3, kOptcc = 4, kRecursive = 5 };

  Kind kind = Kind::kDirect;
  // In so many segments, or chunks, a vector is cut, but none smaller than piece_bytes.
  uint32_t pieces_max = 1;
  uint64_t piece_bytes = kPieceBytesMin;
  // kDirect: what each member owns; together they are kWhole. kRecursive: each member's bandwidth, of kWhole.
  std::vector<uint32_t> parts;
  // kR2ccAllReduce, kOptcc: who is degraded, and what it has kept of its bandwidth.
  uint32_t degraded = 0;
  uint32_t kept = kWhole;
  uint32_t y = 0;  // kR2ccAllReduce: the part that the others add up among themselves

  friend bool operator==(const PlanSpec&, const PlanSpec&) = default;
};

// Empty if MakeSchedule() may be called; otherwise one line that says what is wrong. It may come from anybody.
std::string CheckPlanSpec(const PlanSpec& spec, uint32_t members);

// Members do not all move the same: who has lost rails moves less. On a fabric that joins rail K to rail K alone the others can make up for
// it only by what they send to each other on the rails that he has lost.
bool IsUneven(const PlanSpec& spec);

// One line, for people.
std::string Describe(const PlanSpec& spec);

// The same on all members. A vector of at least a byte.
std::unique_ptr<plan::Schedule> MakeSchedule(const PlanSpec& spec, uint32_t members, uint64_t bytes);

// The plan whose result does not depend on faults: direct owner shares for what each member can carry, bytes a second, in pieces of about
// `piece_bytes`. Members that can carry nothing count as very slow.
//
// Only members that have a path to all others own anything, if there are any (`reach_all`; empty: all have): who owns nothing has no step
// with another that owns nothing. So no step needs a path that is not there, and the sums have the same bits.
PlanSpec PlanFor(const std::vector<uint64_t>& bytes_per_s, uint64_t piece_bytes, const std::vector<bool>& reach_all = {});

}  // namespace r2cc::collnet

#endif  // R2CC_NETPLUGIN_COLLNET_PLAN_SPEC_H_
