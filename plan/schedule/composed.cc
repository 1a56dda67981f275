// Schedules made of parts: R2CC-AllReduce, recursive decomposition, OptCC.
#include <algorithm>
#include <numeric>
#include <utility>

#include "base/core/check.h"
#include "plan/schedule/cost.h"
#include "plan/schedule/generators.h"
#include "plan/schedule/parts.h"

namespace r2cc::plan {
namespace {

std::vector<uint32_t> Everybody(uint32_t members) {
  std::vector<uint32_t> all(members);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// All members but `without`, in order.
std::vector<uint32_t> Others(uint32_t members, const std::vector<uint32_t>& without) {
  std::vector<uint32_t> others;
  for (uint32_t i = 0; i < members; ++i)
    if (std::find(without.begin(), without.end(), i) == without.end()) others.push_back(i);
  return others;
}

}  // namespace

std::unique_ptr<Schedule> MakeR2ccAllReduce(uint32_t members, uint64_t bytes, std::vector<uint32_t> degraded, double lost, double y,
                                            uint32_t chunks) {
  R2CC_CHECK(!degraded.empty() && lost > 0 && lost < 1 && y >= 0 && y <= 1);
  std::vector<uint32_t> healthy = Others(members, degraded);
  R2CC_CHECK(healthy.size() + degraded.size() == members && healthy.size() >= 2 && members % degraded.size() == 0);
  const uint64_t partial = PartBytes(bytes, y);
  const auto core = static_cast<uint32_t>(healthy.size());
  const auto chain = static_cast<uint32_t>(degraded.size());
  healthy.insert(healthy.end(), degraded.begin(), degraded.end());
  std::vector<Parallel::Part> parts;
  parts.push_back({MakePartial(core, chain, {chain}, partial, chunks), std::move(healthy), lost});
  parts.push_back({MakeRing(members, bytes - partial), Everybody(members), 1 - lost});
  return std::make_unique<Parallel>("r2cc-allreduce K=" + std::to_string(chunks), members, std::move(parts));
}

std::unique_ptr<Schedule> MakeRecursive(std::span<const double> bandwidth, uint64_t bytes, uint32_t chunks) {
  const auto members = static_cast<uint32_t>(bandwidth.size());
  R2CC_CHECK(members >= 2);
  std::vector<double> levels(bandwidth.begin(), bandwidth.end());
  std::sort(levels.begin(), levels.end());
  R2CC_CHECK(levels.front() > 0);
  levels.pop_back();  // what one member alone has above all others is of no use to it
  levels.erase(std::unique(levels.begin(), levels.end()), levels.end());
  const double top = levels.back();
  std::vector<Parallel::Part> parts;
  uint64_t left = bytes;
  for (size_t l = levels.size() - 1; l > 0; --l) {
    std::vector<uint32_t> core;
    std::vector<uint32_t> slower;
    for (uint32_t i = 0; i < members; ++i) (bandwidth[i] >= levels[l] ? core : slower).push_back(i);
    const double part = (levels[l] - levels[l - 1]) / top;
    const uint64_t part_bytes = std::min(left, PartBytes(bytes, part));
    left -= part_bytes;
    auto schedule = MakePartial(static_cast<uint32_t>(core.size()), 1, std::vector<uint32_t>(slower.size(), 1), part_bytes, chunks);
    core.insert(core.end(), slower.begin(), slower.end());
    parts.push_back({std::move(schedule), std::move(core), part});
  }
  parts.push_back({MakeRing(members, left), Everybody(members), levels.front() / top});
  return std::make_unique<Parallel>("recursive K=" + std::to_string(chunks), members, std::move(parts));
}

std::unique_ptr<Schedule> MakeOptcc(uint32_t members, uint64_t bytes, uint32_t degraded, double kept, uint32_t segments) {
  R2CC_CHECK(members >= 3 && degraded < members && kept > 0 && kept <= 1);
  const double part = OptccStagedPart(members, kept);
  std::vector<uint32_t> staged = Others(members, {degraded});
  staged.push_back(degraded);
  const uint64_t staged_bytes = part < 1 ? PartBytes(bytes, part) : bytes;
  std::vector<Parallel::Part> parts;
  constexpr double kNothingLost = 1e-9;  // the stages carry nothing then, but their steps are done
  parts.push_back({MakeStaged(members - 1, staged_bytes, segments), std::move(staged), std::max(part, kNothingLost)});
  if (part < 1) parts.push_back({MakeRing(members, bytes - staged_bytes), Everybody(members), (1 - part) * 2 * (members - 1) / members});
  return std::make_unique<Parallel>("optcc k=" + std::to_string(segments), members, std::move(parts));
}

}  // namespace r2cc::plan
