#include "tests/figures/schemes.h"

#include <algorithm>
#include <limits>

#include "base/core/check.h"
#include "plan/schedule/cost.h"

namespace r2cc::figures {
namespace {

using plan::ScheduleKind;

bool MayUse(Scheme scheme, ScheduleKind kind) {
  switch (scheme) {
    case Scheme::kMigration: return kind == ScheduleKind::kRing;
    case Scheme::kBalance: return kind == ScheduleKind::kBalance;
    case Scheme::kR2cc: return kind == ScheduleKind::kBalance || kind == ScheduleKind::kR2ccAllReduce || kind == ScheduleKind::kRecursive;
    case Scheme::kOurs: return true;
  }
  return false;
}

// How much more than its own the busiest of the rails that are left carries, if each lost one's traffic goes to one of them.
double MigratedLoad(int rails, int lost) {
  R2CC_CHECK(lost >= 0 && lost < rails);
  const int left = rails - lost;
  return 1 + (lost + left - 1) / left;
}

double SharedLoad(int rails, int lost) {
  R2CC_CHECK(lost >= 0 && lost < rails);
  return static_cast<double>(rails) / (rails - lost);
}

}  // namespace

const char* SchemeName(Scheme scheme) {
  switch (scheme) {
    case Scheme::kMigration: return "migration only";
    case Scheme::kBalance: return "Balance";
    case Scheme::kR2cc: return "R2CC-AllReduce";
    case Scheme::kOurs: return "ours";
  }
  return "";
}

plan::Ports PortsOf(const Cluster& cluster, const Lost& lost) {
  R2CC_CHECK(lost.size() == static_cast<size_t>(cluster.servers));
  plan::Ports ports{.healthy_bytes_per_s = cluster.server_bytes_per_s(),
                    .rails = static_cast<uint32_t>(cluster.rails),
                    .step_latency_s = cluster.step_latency_s,
                    .step_overhead_bytes = cluster.message_s * cluster.server_bytes_per_s()};
  for (const int rails : lost) ports.bytes_per_s.push_back((cluster.rails - rails) * cluster.rail_bytes_per_s);
  return ports;
}

double ServerAllReduceSeconds(const Cluster& cluster, Scheme scheme, double bytes, const Lost& lost) {
  const plan::Decision decision = plan::Choose(static_cast<uint64_t>(bytes), PortsOf(cluster, lost));
  double best_s = std::numeric_limits<double>::infinity();
  for (const plan::Candidate& candidate : decision.candidates) {
    if (MayUse(scheme, candidate.kind)) best_s = std::min(best_s, candidate.time_s);
  }
  R2CC_CHECK(best_s < std::numeric_limits<double>::infinity());
  return best_s;
}

double FlatAllReduceSeconds(const Cluster& cluster, int gpus, Scheme scheme, double bytes, const Lost& lost) {
  R2CC_CHECK(scheme != Scheme::kOurs);
  const double healthy_bytes_per_s = cluster.server_bytes_per_s();
  const double ring_s = plan::FaultFreeRingTime(gpus, bytes, healthy_bytes_per_s);
  const int worst = *std::max_element(lost.begin(), lost.end());
  if (scheme == Scheme::kMigration) return ring_s * MigratedLoad(cluster.rails, worst);
  const double balance_s = ring_s * SharedLoad(cluster.rails, worst);
  const auto degraded = std::count_if(lost.begin(), lost.end(), [](int rails) { return rails > 0; });
  if (scheme == Scheme::kBalance || degraded != 1) return balance_s;
  const double lost_share = static_cast<double>(worst) / cluster.rails;
  const auto hit_gpus = static_cast<uint32_t>(gpus / cluster.servers);
  return std::min(balance_s, plan::R2ccAllReduceTime(gpus, bytes, healthy_bytes_per_s, lost_share, lost_share, 0, 0, hit_gpus));
}

double TransferSeconds(const Cluster& cluster, Scheme scheme, double bytes, int lost) {
  const double load = scheme == Scheme::kMigration ? MigratedLoad(cluster.rails, lost) : SharedLoad(cluster.rails, lost);
  return cluster.step_latency_s + bytes * load / cluster.rail_bytes_per_s;
}

}  // namespace r2cc::figures
