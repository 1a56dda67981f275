// Generates the schedules. X is the fraction of its bandwidth that a degraded member has lost, p the number of members, D the vector's
// bytes.
// Sources: ring: Patarasuk and Yuan 2009; R2CC-AllReduce and recursive decomposition: Wang et al., arXiv 2512.25059; OptCC: Chen et
// al., arXiv 2606.01680. plan/collective/cost.h has the cost of each.
//
// Every function takes members >= 2 unless its comment states otherwise, and ends the process on arguments that its comment excludes.
#ifndef R2CC_PLAN_SCHEDULE_GENERATORS_H_
#define R2CC_PLAN_SCHEDULE_GENERATORS_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "plan/schedule/schedule.h"

namespace r2cc::plan {

// One ring through all members, in `order` (a permutation; empty: 0, 1, 2, ...). With `channels` > 1, that number of rings in parallel,
// each on lane c with its part of the vector, as in a library that ties a channel to a rail. Balance is the same ring over rails that share
// its bytes by what they can carry, so it is this schedule on a fabric whose rails are pooled.
std::unique_ptr<Schedule> MakeRing(uint32_t members, uint64_t bytes, std::vector<uint32_t> order = {}, uint32_t channels = 1);

// Half a ring: ReduceScatter or AllGather in which member i owns shares[i] / sum of the vector (shares >= 0, sum > 0).
std::unique_ptr<Schedule> MakeRingHalf(Collective half, uint64_t bytes, std::span<const double> shares);

// Every member sends its copy of shard i straight to its owner i, which adds and sends the sum to all. Member i owns shares[i] / sum of
// each of `segments` segments; the reduction of one segment goes over the gathering of the one before. Members that own nothing have no
// step with each other. kReduceScatter and kAllGather do only their half. Members with equal shares and equal bandwidth form a rotation:
// `like` gives, for each member, a number that is equal for members that are equal in all else too (empty: the shares decide).
std::unique_ptr<Schedule> MakeDirect(Collective collective, uint64_t bytes, uint32_t segments, std::span<const double> shares,
                                     std::span<const double> like = {});

// R2CC-AllReduce: the share Y by a ring of the healthy members over what the `degraded` ones lack, the other part meanwhile by a ring
// through all; then what the degraded ones contribute to Y is added and the sum goes to everybody, in K chunks. `degraded` is one member,
// or all members of one server where each server has as many, numbered in a row; they add up among themselves first, and every server
// receives the sum once. At least two members must be left; 0 < lost < 1, 0 <= Y <= 1.
std::unique_ptr<Schedule> MakeR2ccAllReduce(uint32_t members, uint64_t bytes, std::vector<uint32_t> degraded, double lost, double y,
                                            uint32_t chunks);

// The same for any number of degraded members: the slowest are peeled off level by level, and each level's spare bandwidth carries a
// partial AllReduce of those that have it. bandwidth[i] > 0 in any unit. At least two members must have the highest bandwidth.
std::unique_ptr<Schedule> MakeRecursive(std::span<const double> bandwidth, uint64_t bytes, uint32_t chunks);

// OptCC: segments of members-1 sections, each reduced and gathered on the ring of the healthy members and exchanged with the degraded
// one in between (patterns A, C) or around (B, D). `kept` = 1-X. Above the crossing of the bound's two branches, a part of the vector
// goes by a plain ring through all. members >= 3, 0 < kept <= 1, segments >= 1.
std::unique_ptr<Schedule> MakeOptcc(uint32_t members, uint64_t bytes, uint32_t degraded, double kept, uint32_t segments);

// A ring in which neighbours share as many working rails as can be, for fabrics in which rail k reaches only rail k: members that lost
// different rails are parted by one that has both. rails[i] has bit k set if member i's rail k works. Starts at member 0 and keeps the
// given order where nothing is gained.
std::vector<uint32_t> RerankRing(std::span<const uint64_t> rails);

}  // namespace r2cc::plan

#endif  // R2CC_PLAN_SCHEDULE_GENERATORS_H_
