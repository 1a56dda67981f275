// Computes the cost of a collective in closed form. D bytes, p members, B[i] the bytes a second that member i moves each way, b = B[i] / B
// of a healthy member, X = 1-b, k or K segments. Seconds out. A step costs latency_s once, in parallel with other lanes' steps, and
// overhead_bytes of its ports; with them, the forms of the pipelined schedules are estimates, which the tests compare with the simulator.
#ifndef R2CC_PLAN_SCHEDULE_COST_H_
#define R2CC_PLAN_SCHEDULE_COST_H_

#include <cstdint>
#include <span>
#include <vector>

namespace r2cc::plan {

// 2(p-1)D/(pB): the ring without a fault; T0 elsewhere.
double FaultFreeRingTime(uint32_t members, double bytes, double bytes_per_s);

// max(D / min B, 2(p-1)D / sum B): no AllReduce is faster. Each member must send its contribution once and receive the result once;
// and each byte of the result takes p-1 receives before someone has it and p-1 more before all do (arXiv 2606.01680, any B).
double LowerBoundTime(double bytes, std::span<const double> bytes_per_s);

// The ring through all: 2(p-1) (D/(p min B) + latency). Balance is the same; without it a rail that carries a dead one's channel too
// sets the pace.
double RingTime(double bytes, std::span<const double> bytes_per_s, double latency_s = 0, double overhead_bytes = 0);

// R2CC-AllReduce: max(T1, T2) + (1+1/K) T3 with T1 = 2(p-1)/p (1-Y)D/((1-X)B), T2 = 2(p-2)/(p-1) YD/(XB), T3 = YD/((1-X)B).
// K = 0 means infinity. With `degraded` members of one server, as many fewer in T2's ring.
double R2ccAllReduceTime(uint32_t members, double bytes, double bytes_per_s, double lost, double y, uint32_t chunks, double latency_s = 0,
                         uint32_t degraded = 1, double overhead_bytes = 0);
// The Y at which T1 = T2: (p-1)^2 X / (p(p-2) + X) for one degraded member.
double R2ccOptimalY(uint32_t members, double lost, uint32_t degraded = 1);

// The number of pieces in which the exchange of R2CC-AllReduce goes down its trees: enough that their depth costs less than the one chunk
// more that the form above allows for, and a whole number to each chunk of the ring of `core` members.
uint32_t R2ccPieces(uint32_t core, uint32_t chunks);

// R2CC-AllReduce with Y = X on every level of bandwidth: any number of degraded members. The slowest of them sets the pace.
double RecursiveTime(double bytes, std::span<const double> bytes_per_s, uint32_t chunks, double latency_s = 0, double overhead_bytes = 0);

// OptCC with one degraded member that keeps b = `kept` of its bandwidth; `segments` 1, 2, 3 or a multiple of 4 (others end in a group
// that hides less of its ring work than this states).
double OptccTime(uint32_t members, double bytes, double bytes_per_s, double kept, uint32_t segments, double latency_s = 0,
                 double overhead_bytes = 0);
// The part of the vector that goes by OptCC's four stages; the other part goes by a plain ring. 1 up to the crossing b = (p-1)/(2p-3), then
// 2(p-1)^2(1-b) / ((p-2)(p-1+b)).
double OptccStagedPart(uint32_t members, double kept);

// Owner shares that meet the bound: w[i] proportional to max(0, T B[i] / D - 1), T the bound. They sum to 1. Two members own halves.
std::vector<double> DirectShares(std::span<const double> bytes_per_s);
// The same if only members with `may_own` may own a part: those that may make up for it. One must.
std::vector<double> DirectShares(std::span<const double> bytes_per_s, const std::vector<bool>& may_own);
// The direct schedule with those shares: at most (k+1)/k of the bound, and a little less as the first and the last slot carry half.
double DirectTime(double bytes, std::span<const double> bytes_per_s, uint32_t segments, double latency_s = 0, double overhead_bytes = 0);

// One half of an AllReduce with even shares, which is what a caller of ReduceScatter or AllGather wants: each member moves (p-1)D/p
// each way, by a ring or straight.
double HalfTime(double bytes, std::span<const double> bytes_per_s, double latency_s = 0, double overhead_bytes = 0);

}  // namespace r2cc::plan

#endif  // R2CC_PLAN_SCHEDULE_COST_H_
