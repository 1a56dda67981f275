#include "netplugin/transport/tcp/budget.h"

#include <algorithm>
#include <cmath>

namespace r2cc::net {
namespace {

// One stream is the work of one processor at either end, so that a quick rail wants several; but they share the rail, and each message
// takes longer.
constexpr double kRateOfSocket = 600e6;
constexpr size_t kSocketsLeast = 2;

// Many unsent bytes are good for speed while flows keep to their own rails, but what a fault makes the rail carry besides waits behind
// them: no more than it sends in two milliseconds.
constexpr double kUnsentSeconds = 0.002;
struct Bounds {
  uint32_t least, most;
};
constexpr Bounds kUnsentBytes{128 * 1024, 1024 * 1024};
// While chunks are dealt out a message waits for those that a slow rail has taken: with queues of 384 KiB a rail at a quarter of
// 500 Mbit/s held each message up for 25 ms.
constexpr Bounds kUnsentBytesSpread{32 * 1024, 256 * 1024};

// TCP fills a slow rail's queue with all that its window allows, tens of milliseconds: packets fall, and what a fault makes the rail carry
// besides waits behind them.
constexpr double kHoldSeconds = 0.005;
// An eager message (64 KiB) fits at least: who posted it need not come back. A rate is not trusted as far while flows keep to their own
// rails, since small messages make any rail look slow; and while they do not, a message waits for what a slow rail holds.
constexpr uint64_t kHeldBytesLeast = 256 * 1024, kHeldBytesLeastSpread = 96 * 1024;
// What TCP holds at most by itself is little for a rail that needs more than this.
constexpr double kHeldBytesMost = 4 * 1024 * 1024;

size_t SocketsOf(const BudgetFacts& facts) {
  if (facts.sockets <= kSocketsLeast) return facts.sockets;
  const double wanted = std::ceil(facts.rate_bytes_per_s / kRateOfSocket);
  return static_cast<size_t>(std::clamp<double>(wanted, kSocketsLeast, static_cast<double>(facts.sockets)));
}

uint32_t UnsentBytesOf(const BudgetFacts& facts) {
  const Bounds bounds = facts.spread ? kUnsentBytesSpread : kUnsentBytes;
  if (facts.rate_bytes_per_s <= 0) return bounds.most;
  return static_cast<uint32_t>(std::clamp<double>(facts.rate_bytes_per_s * kUnsentSeconds, bounds.least, bounds.most));
}

uint64_t HeldBytesOf(const BudgetFacts& facts) {
  // Twice the round trip: a rate that this limit itself keeps low must be able to grow.
  const double seconds = kHoldSeconds + 2 * static_cast<double>(facts.round_trip) / static_cast<double>(kNanosPerSecond);
  const double bytes = facts.rate_bytes_per_s * seconds;
  if (bytes <= 0 || bytes > kHeldBytesMost) return 0;
  return std::max(static_cast<uint64_t>(bytes), facts.spread ? kHeldBytesLeastSpread : kHeldBytesLeast);
}

}  // namespace

Budget BudgetOf(const BudgetFacts& facts) { return {SocketsOf(facts), UnsentBytesOf(facts), HeldBytesOf(facts)}; }

int WorkersFor(int processors) {
  constexpr int kMost = 16;
  // A few are left to NCCL's and the job's threads; of the others workers have half.
  constexpr int kLeft = 4;
  if (processors < 8) return std::max((processors - kLeft) / 2, 0);
  // H100s, NCCL's all_reduce between two nodes. 8 processors a node, rails of 8 Gbit/s: six workers move 27 to 29 Gbit/s, four 25 to 29,
  // two and three 20 to 22. 16 processors, rails without a rate: six 80 Gbit/s, ten 109, sixteen 119.
  return std::min(processors * 3 / 4, kMost);
}

}  // namespace r2cc::net
