#include "plan/collective/cost.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/core/check.h"

namespace r2cc::plan {
namespace {

double Slowest(std::span<const double> bytes_per_s) { return *std::min_element(bytes_per_s.begin(), bytes_per_s.end()); }
double Fastest(std::span<const double> bytes_per_s) { return *std::max_element(bytes_per_s.begin(), bytes_per_s.end()); }

// What one member of a ring of `members` moves each way in an AllReduce of one byte.
double RingLoad(double members) { return 2 * (members - 1) / members; }

double Chunked(uint32_t chunks) { return chunks == 0 ? 1 : 1 + 1.0 / chunks; }

}  // namespace

double FaultFreeRingTime(uint32_t members, double bytes, double bytes_per_s) { return RingLoad(members) * bytes / bytes_per_s; }

double LowerBoundTime(double bytes, std::span<const double> bytes_per_s) {
  const double sum = std::accumulate(bytes_per_s.begin(), bytes_per_s.end(), 0.0);
  return std::max(bytes / Slowest(bytes_per_s), 2 * (static_cast<double>(bytes_per_s.size()) - 1) * bytes / sum);
}

double RingTime(double bytes, std::span<const double> bytes_per_s, double latency_s) {
  const double members = static_cast<double>(bytes_per_s.size());
  return RingLoad(members) * bytes / Slowest(bytes_per_s) + 2 * (members - 1) * latency_s;
}

double R2ccAllReduceTime(uint32_t members, double bytes, double bytes_per_s, double lost, double y, uint32_t chunks, double latency_s,
                         uint32_t degraded) {
  R2CC_CHECK(members > degraded + 1 && lost > 0 && lost < 1);
  const double kept = 1 - lost;
  const double through_all = RingLoad(members) * (1 - y) * bytes / (kept * bytes_per_s) + 2 * (members - 1) * latency_s;
  const double through_healthy = RingLoad(members - degraded) * y * bytes / (lost * bytes_per_s) + 2 * (members - degraded - 1) * latency_s;
  const double exchange = y * bytes / (kept * bytes_per_s);
  // The first chunk goes out, down the trees and back; the others follow it.
  const double hops = 2 + std::ceil(std::log2(members - degraded));
  return std::max(through_all, through_healthy) + Chunked(chunks) * exchange + (hops + chunks) * latency_s;
}

double R2ccOptimalY(uint32_t members, double lost, uint32_t degraded) {
  const double all = RingLoad(members) / (1 - lost);
  const double healthy = RingLoad(members - degraded) / lost;
  return all / (all + healthy);
}

double RecursiveTime(double bytes, std::span<const double> bytes_per_s, uint32_t chunks, double latency_s) {
  const double members = static_cast<double>(bytes_per_s.size());
  const double fastest = Fastest(bytes_per_s);
  const double slowest = Slowest(bytes_per_s);
  const double rings = RingLoad(members) * bytes / fastest + 2 * (members - 1) * latency_s;
  const double exchange = (1 - slowest / fastest) * bytes / slowest;
  return rings + Chunked(chunks) * exchange + (2 + std::ceil(std::log2(members)) + chunks) * latency_s;
}

double OptccStagedPart(uint32_t members, double kept) {
  const double p = members;
  if (kept <= (p - 1) / (2 * p - 3)) return 1;
  return 2 * (p - 1) * (p - 1) * (1 - kept) / ((p - 2) * (p - 1 + kept));
}

double OptccTime(uint32_t members, double bytes, double bytes_per_s, double kept, uint32_t segments, double latency_s,
                 double overhead_bytes) {
  const double healthy = members - 1;
  const double staged = OptccStagedPart(members, kept);
  const double through_all = RingLoad(members) * (1 - staged) * bytes;  // each member's load from the plain ring
  const double segment = staged * bytes / segments;
  // A slot carries one segment both ways over the degraded member's port, and the plain ring's part of it.
  const double slot = (segment + through_all / segments + healthy * overhead_bytes) / (kept * bytes_per_s) + latency_s;
  const double ring_load = RingLoad(healthy) * segment + (segment / healthy) + through_all / segments;
  const double ring = (ring_load + 2 * healthy * overhead_bytes) / bytes_per_s + 2 * (healthy - 1) * latency_s;
  return segments * std::max(slot, ring) + ring / 2;
}

std::vector<double> DirectShares(std::span<const double> bytes_per_s) {
  const double bound = LowerBoundTime(1, bytes_per_s);
  std::vector<double> shares;
  for (const double rate : bytes_per_s) shares.push_back(std::max(0.0, bound * rate - 1));
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  // Only two members have nothing to spare at the bound, whatever they own.
  for (double& share : shares) share = sum > 0 ? share / sum : 1.0 / static_cast<double>(bytes_per_s.size());
  return shares;
}

double DirectTime(double bytes, std::span<const double> bytes_per_s, uint32_t segments, double latency_s, double overhead_bytes) {
  const std::vector<double> shares = DirectShares(bytes_per_s);
  const double others = static_cast<double>(bytes_per_s.size()) - 1;
  const double segment = bytes / segments;
  double full = 0;
  double half = 0;
  for (size_t i = 0; i < shares.size(); ++i) {
    const double steps = others * overhead_bytes;
    full = std::max(full, ((1 + (others - 1) * shares[i]) * segment + 2 * steps) / bytes_per_s[i]);
    half = std::max(half, (std::max(1 - shares[i], others * shares[i]) * segment + steps) / bytes_per_s[i]);
  }
  return (segments - 1) * full + 2 * half + 2 * segments * latency_s;
}

double HalfTime(double bytes, std::span<const double> bytes_per_s, double latency_s) { return RingTime(bytes, bytes_per_s, latency_s) / 2; }

}  // namespace r2cc::plan
