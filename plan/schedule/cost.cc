#include "plan/schedule/cost.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <set>

#include "base/core/check.h"

namespace r2cc::plan {
namespace {

double Slowest(std::span<const double> bytes_per_s) { return *std::min_element(bytes_per_s.begin(), bytes_per_s.end()); }
double Fastest(std::span<const double> bytes_per_s) { return *std::max_element(bytes_per_s.begin(), bytes_per_s.end()); }

// The bytes that one member of a ring of `members` moves each way in an AllReduce of one byte.
double RingLoad(double members) { return 2 * (members - 1) / members; }

double RingOf(double members, double bytes, double bytes_per_s, double latency_s, double overhead_bytes) {
  return 2 * (members - 1) * (latency_s + (bytes / members + overhead_bytes) / bytes_per_s);
}

// A degraded member's contribution goes out, and the sum comes in one chunk later.
double Exchange(double bytes, double bytes_per_s, uint32_t core, uint32_t chunks, double latency_s, double overhead_bytes) {
  if (chunks == 0) return bytes / bytes_per_s;
  const double pieces = R2ccPieces(core, chunks);
  return (1 + 1.0 / chunks) * (bytes / bytes_per_s + pieces * (latency_s + overhead_bytes / bytes_per_s));
}

}  // namespace

double FaultFreeRingTime(uint32_t members, double bytes, double bytes_per_s) { return RingLoad(members) * bytes / bytes_per_s; }

double LowerBoundTime(double bytes, std::span<const double> bytes_per_s) {
  const double sum = std::accumulate(bytes_per_s.begin(), bytes_per_s.end(), 0.0);
  return std::max(bytes / Slowest(bytes_per_s), 2 * (static_cast<double>(bytes_per_s.size()) - 1) * bytes / sum);
}

double RingTime(double bytes, std::span<const double> bytes_per_s, double latency_s, double overhead_bytes) {
  return RingOf(static_cast<double>(bytes_per_s.size()), bytes, Slowest(bytes_per_s), latency_s, overhead_bytes);
}

uint32_t R2ccPieces(uint32_t core, uint32_t chunks) {
  const uint32_t pieces = chunks * 4 * static_cast<uint32_t>(std::bit_width(core));
  return (pieces + core - 1) / core * core;
}

double R2ccAllReduceTime(uint32_t members, double bytes, double bytes_per_s, double lost, double y, uint32_t chunks, double latency_s,
                         uint32_t degraded, double overhead_bytes) {
  R2CC_CHECK(members > degraded + 1 && lost > 0 && lost < 1);
  const double kept = 1 - lost;
  const uint32_t core = members - degraded;
  const double through_all = RingOf(members, (1 - y) * bytes, kept * bytes_per_s, latency_s, overhead_bytes);
  const double through_healthy = RingOf(core, y * bytes, lost * bytes_per_s, latency_s, overhead_bytes);
  return std::max(through_all, through_healthy) + Exchange(y * bytes, kept * bytes_per_s, core, chunks, latency_s, overhead_bytes);
}

double R2ccOptimalY(uint32_t members, double lost, uint32_t degraded) {
  const double all = RingLoad(members) / (1 - lost);
  const double healthy = RingLoad(members - degraded) / lost;
  return all / (all + healthy);
}

double RecursiveTime(double bytes, std::span<const double> bytes_per_s, uint32_t chunks, double latency_s, double overhead_bytes) {
  const auto members = static_cast<uint32_t>(bytes_per_s.size());
  const double fastest = Fastest(bytes_per_s);
  const double slowest = Slowest(bytes_per_s);
  // The slowest member exchanges with each level above its own.
  const double levels = static_cast<double>(std::set<double>(bytes_per_s.begin(), bytes_per_s.end()).size()) - 1;
  return RingOf(members, bytes, fastest, latency_s, (levels + 1) * overhead_bytes) +
         Exchange((1 - slowest / fastest) * bytes, slowest, members - 1, chunks, latency_s, levels * overhead_bytes);
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
  // Four segments make a group whose patterns hide the lesser of the two behind the greater, but for half of one at the ends. Fewer hide
  // less, a single one nothing.
  if (segments == 1) return 2 * slot + ring;
  return segments * std::max(slot, ring) + std::min(slot, ring) / (segments < 4 ? 1 : 2);
}

std::vector<double> DirectShares(std::span<const double> bytes_per_s) {
  return DirectShares(bytes_per_s, std::vector<bool>(bytes_per_s.size(), true));
}

std::vector<double> DirectShares(std::span<const double> bytes_per_s, const std::vector<bool>& may_own) {
  const size_t members = bytes_per_s.size();
  const auto owners = static_cast<size_t>(std::count(may_own.begin(), may_own.end(), true));
  R2CC_CHECK(may_own.size() == members && owners > 0);
  std::vector<double> shares;
  // The parts that two members own cost neither of them anything: each sends and receives the whole vector. Halves keep both directions
  // busy at once.
  if (members == 2) {
    for (const bool may : may_own) shares.push_back(may ? 1.0 / static_cast<double>(owners) : 0);
    return shares;
  }
  // An owner moves 1 + (p-2) w each way, any other member 1. If all owners finish together, that is after `time`.
  double sum = 0;
  for (size_t i = 0; i < members; ++i) sum += may_own[i] ? bytes_per_s[i] : 0;
  const double time = std::max(1 / Slowest(bytes_per_s), static_cast<double>(members - 2 + owners) / sum);
  for (size_t i = 0; i < members; ++i) shares.push_back(may_own[i] ? std::max(0.0, time * bytes_per_s[i] - 1) : 0);
  const double all = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share /= all;
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

double HalfTime(double bytes, std::span<const double> bytes_per_s, double latency_s, double overhead_bytes) {
  return RingTime(bytes, bytes_per_s, latency_s, overhead_bytes) / 2;
}

}  // namespace r2cc::plan
