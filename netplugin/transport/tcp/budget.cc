#include "netplugin/transport/tcp/budget.h"

#include <algorithm>
#include <cmath>

#include "netplugin/flow/tuning.h"

namespace r2cc::net {
namespace {

size_t SocketsOf(const BudgetFacts& facts) {
  if (facts.sockets <= tuning::kSocketsLeast) return facts.sockets;
  const double wanted = std::ceil(facts.rate_bytes_per_s / tuning::kSocketBytesPerSecond);
  return static_cast<size_t>(std::clamp<double>(wanted, tuning::kSocketsLeast, static_cast<double>(facts.sockets)));
}

uint32_t UnsentBytesOf(const BudgetFacts& facts) {
  if (facts.rate_bytes_per_s <= 0) return tuning::kCallBytesMost;
  const uint32_t least_bytes = facts.striped ? tuning::kUnsentBytesLeast : tuning::kChunkBytesBase;
  return static_cast<uint32_t>(std::clamp<double>(facts.rate_bytes_per_s * tuning::kQueuedSeconds, least_bytes, tuning::kTurnBytes));
}

uint64_t HeldBytesOf(const BudgetFacts& facts) {
  // Twice the round trip: a rate that this limit itself keeps low must be able to grow.
  const double seconds = tuning::kHeldSeconds + 2 * static_cast<double>(facts.round_trip) / static_cast<double>(kNanosPerSecond);
  const double bytes = facts.rate_bytes_per_s * seconds;
  if (bytes <= 0 || bytes > tuning::kHeldBytesMost) return 0;
  return std::max(static_cast<uint64_t>(bytes), facts.striped ? tuning::kHeldBytesLeast : uint64_t{2} * tuning::kChunkBytesBase);
}

}  // namespace

Budget BudgetOf(const BudgetFacts& facts) { return {SocketsOf(facts), UnsentBytesOf(facts), HeldBytesOf(facts)}; }

int WorkersFor(int processors) {
  if (processors < 8) return std::max((processors - tuning::kProcessorsOfNccl) / 2, 0);
  // H100s, NCCL's all_reduce between two nodes. 8 processors a node, rails of 8 Gbit/s: six workers move 27 to 29 Gbit/s, four 25 to 29,
  // two and three 20 to 22. 16 processors, rails without a rate: six 80 Gbit/s, ten 109, sixteen 119.
  return std::min(processors * 3 / 4, tuning::kBulkWorkersMost);
}

}  // namespace r2cc::net
