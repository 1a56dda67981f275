#include "netplugin/collnet/plan_spec.h"

#include <algorithm>
#include <cstdio>
#include <numeric>

#include "base/core/check.h"
#include "plan/schedule/cost.h"
#include "plan/schedule/generators.h"

namespace r2cc::collnet {
namespace {

using Kind = PlanSpec::Kind;

double PartOf(uint32_t part) { return static_cast<double>(part) / PlanSpec::kWhole; }

std::string CheckShares(const PlanSpec& spec, uint32_t members) {
  if (spec.parts.size() != members)
    return "shares for " + std::to_string(spec.parts.size()) + " of " + std::to_string(members) + " members";
  const uint64_t sum = std::accumulate(spec.parts.begin(), spec.parts.end(), uint64_t{0});
  if (sum != PlanSpec::kWhole) return "shares that add up to " + std::to_string(sum) + ", not " + std::to_string(PlanSpec::kWhole);
  return "";
}

std::string CheckBandwidths(const PlanSpec& spec, uint32_t members) {
  if (spec.parts.size() != members)
    return "bandwidths of " + std::to_string(spec.parts.size()) + " of " + std::to_string(members) + " members";
  const auto [least, most] = std::minmax_element(spec.parts.begin(), spec.parts.end());
  if (*least == 0 || *most > PlanSpec::kWhole) return "a bandwidth of " + std::to_string(*least == 0 ? 0 : *most);
  if (std::count(spec.parts.begin(), spec.parts.end(), *most) < 2) return "only one member has the highest bandwidth";
  return "";
}

// One member that has lost a part, and enough others.
std::string CheckDegraded(const PlanSpec& spec, uint32_t members) {
  if (members < 3) return "a degraded member among " + std::to_string(members);
  if (spec.degraded >= members) return "member " + std::to_string(spec.degraded) + " of " + std::to_string(members) + " is degraded";
  if (spec.kept == 0 || spec.kept >= PlanSpec::kWhole) return "a degraded member that keeps " + std::to_string(spec.kept);
  if (spec.y > PlanSpec::kWhole) return "a part of " + std::to_string(spec.y);
  return "";
}

uint32_t PiecesOf(const PlanSpec& spec, uint64_t bytes) {
  return static_cast<uint32_t>(std::clamp<uint64_t>(bytes / spec.piece_bytes, 1, spec.pieces_max));
}

}  // namespace

std::string CheckPlanSpec(const PlanSpec& spec, uint32_t members) {
  if (members < 2 || members > kMembersMax) return "a group of " + std::to_string(members);
  if (spec.pieces_max < 1 || spec.pieces_max > PlanSpec::kPiecesMax) return std::to_string(spec.pieces_max) + " pieces";
  if (spec.piece_bytes < PlanSpec::kPieceBytesMin) return "pieces of " + std::to_string(spec.piece_bytes) + " bytes";
  switch (spec.kind) {
    case Kind::kDirect: return CheckShares(spec, members);
    case Kind::kRing: return "";
    case Kind::kR2ccAllReduce:
    case Kind::kOptcc: return CheckDegraded(spec, members);
    case Kind::kRecursive: return CheckBandwidths(spec, members);
  }
  return "schedule " + std::to_string(static_cast<int>(spec.kind)) + ", which this release does not know";
}

bool IsUneven(const PlanSpec& spec) {
  if (spec.kind == Kind::kRing) return false;
  if (spec.kind != Kind::kDirect) return true;
  const auto [least, most] = std::minmax_element(spec.parts.begin(), spec.parts.end());
  return *most - *least > 1;  // else it is rounding
}

std::string Describe(const PlanSpec& spec) {
  constexpr size_t kPartsMost = 16;
  const auto percent = [](uint32_t part) {
    char text[16];
    std::snprintf(text, sizeof(text), "%.1f", 100 * PartOf(part));
    return std::string(text);
  };
  std::string parts;
  for (size_t i = 0; i < std::min(spec.parts.size(), kPartsMost); ++i) parts += (i == 0 ? "" : ", ") + percent(spec.parts[i]);
  if (spec.parts.size() > kPartsMost) parts += ", ... of " + std::to_string(spec.parts.size()) + " members";
  const std::string degraded = "member " + std::to_string(spec.degraded) + " keeps " + percent(spec.kept) + " %";
  switch (spec.kind) {
    case Kind::kDirect: return "members own " + parts + " %";
    case Kind::kRing: return "a ring";
    case Kind::kR2ccAllReduce: return "R2CC-AllReduce, " + degraded;
    case Kind::kOptcc: return "OptCC, " + degraded;
    case Kind::kRecursive: return "recursive, bandwidths " + parts + " %";
  }
  return "unknown";
}

std::unique_ptr<plan::Schedule> MakeSchedule(const PlanSpec& spec, uint32_t members, uint64_t bytes) {
  R2CC_CHECK(CheckPlanSpec(spec, members).empty());
  const uint32_t pieces = PiecesOf(spec, bytes);
  std::vector<double> parts;
  for (const uint32_t part : spec.parts) parts.push_back(PartOf(part));
  switch (spec.kind) {
    case Kind::kDirect: return plan::MakeDirect(plan::Collective::kAllReduce, bytes, pieces, parts);
    case Kind::kRing: return plan::MakeRing(members, bytes);
    case Kind::kR2ccAllReduce:
      return plan::MakeR2ccAllReduce(members, bytes, {spec.degraded}, PartOf(PlanSpec::kWhole - spec.kept), PartOf(spec.y), pieces);
    case Kind::kOptcc: return plan::MakeOptcc(members, bytes, spec.degraded, PartOf(spec.kept), pieces);
    case Kind::kRecursive: return plan::MakeRecursive(parts, bytes, pieces);
  }
  return nullptr;
}

PlanSpec PlanFor(const std::vector<uint64_t>& bytes_per_s, uint64_t piece_bytes, const std::vector<bool>& reach_all) {
  constexpr double kVerySlow = 1e-6;  // of the quickest
  const uint64_t most = *std::max_element(bytes_per_s.begin(), bytes_per_s.end());
  std::vector<double> rates;
  for (const uint64_t rate : bytes_per_s)
    rates.push_back(most == 0 ? 1 : std::max(static_cast<double>(rate) / static_cast<double>(most), kVerySlow));
  PlanSpec spec;
  spec.kind = Kind::kDirect;
  spec.pieces_max = PlanSpec::kPiecesMax / 2;
  spec.piece_bytes = std::max(piece_bytes, PlanSpec::kPieceBytesMin);
  // Rounded so that the sum is exact: each gets the difference of two rounded sums.
  double before = 0;
  uint32_t given = 0;
  const bool some = std::count(reach_all.begin(), reach_all.end(), true) > 0;
  const std::vector<double> shares = some ? plan::DirectShares(rates, reach_all) : plan::DirectShares(rates);
  for (size_t i = 0; i < shares.size(); ++i) {
    before += shares[i];
    const uint32_t up_to =
        i + 1 == shares.size() ? PlanSpec::kWhole : std::min(PlanSpec::kWhole, static_cast<uint32_t>(before * PlanSpec::kWhole + 0.5));
    spec.parts.push_back(up_to - given);
    given = up_to;
  }
  return spec;
}

}  // namespace r2cc::collnet
