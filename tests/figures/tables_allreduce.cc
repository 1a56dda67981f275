// AllReduce among equal members of which one is degraded: the table of bounds, OptCC's claim, and what a step's latency changes.
#include <future>
#include <memory>

#include "base/core/check.h"
#include "plan/collective/choose.h"
#include "plan/schedule/cost.h"
#include "plan/schedule/generators.h"
#include "plan/simulate/ports_fabric.h"
#include "tests/figures/simulated.h"
#include "tests/figures/tables.h"

namespace r2cc::figures {
namespace {

constexpr double kBytesPerS = 50e9;  // 400 Gb/s
constexpr uint64_t kMiB = 1 << 20;
// Without latency only ratios count: so much that cutting between elements rounds nothing off.
constexpr uint64_t kBytes = 65536 * kMiB;

struct Loss {
  const char* name;
  double lost;
};

constexpr Loss kLosses[] = {{"1/8", 0.125}, {"1/4", 0.25}, {"1/2", 0.5}, {"3/4", 0.75}};

plan::Ports OneDegraded(int members, double lost) {
  plan::Ports ports{.bytes_per_s = std::vector<double>(members, kBytesPerS), .healthy_bytes_per_s = kBytesPerS, .rails = 8};
  ports.bytes_per_s[0] *= 1 - lost;
  return ports;
}

const plan::Candidate& Of(const plan::Decision& decision, plan::ScheduleKind kind) {
  for (const plan::Candidate& candidate : decision.candidates) {
    if (candidate.kind == kind) return candidate;
  }
  R2CC_CHECK(!"the schedule is among the candidates");
  return decision.chosen;
}

double Percent(double ratio) { return (ratio - 1) * 100; }

struct BoundsCase {
  int members;
  Loss loss;
};

// The step list's time over the ring without a fault.
Cell R2ccSimulated(int members, double lost, uint32_t chunks, const plan::Ports& ports, double ring_s) {
  const auto schedule = plan::MakeR2ccAllReduce(members, kBytes, {0}, lost, lost, chunks);
  return {Simulated(*schedule, plan::FabricOf(ports, plan::ScheduleKind::kR2ccAllReduce)).time_s / ring_s, 4};
}

std::vector<Cell> BoundsRow(const BoundsCase& of) {
  constexpr uint32_t kChunks = 64;
  const auto [members, loss] = of;
  const plan::Ports ports = OneDegraded(members, loss.lost);
  const double ring_s = plan::FaultFreeRingTime(members, kBytes, kBytesPerS);
  const double bound_s = plan::LowerBoundTime(kBytes, ports.bytes_per_s);
  const plan::Decision decision = plan::Choose(kBytes, ports);
  const CandidateRun ours = SimulatedCandidate(decision.chosen, kBytes, ports);
  const double segments = decision.chosen.segments;
  return {members,
          loss.name,
          {bound_s / ring_s, 4},
          {plan::R2ccAllReduceTime(members, kBytes, kBytesPerS, loss.lost, loss.lost, 0) / ring_s, 4},
          {plan::R2ccAllReduceTime(members, kBytes, kBytesPerS, loss.lost, loss.lost, kChunks) / ring_s, 4},
          R2ccSimulated(members, loss.lost, kChunks, ports, ring_s),
          {plan::RingTime(kBytes, ports.bytes_per_s, 0) / ring_s, 4},
          {ours.seconds / ring_s, 4},
          plan::ScheduleName(decision.chosen.kind),
          static_cast<int>(decision.chosen.segments),
          {ours.seconds / bound_s, 4},
          {(segments + 1) / segments * 1.02, 4},
          ours.in_full ? "in full" : "one of a rotation"};
}

Table Bounds() {
  std::vector<BoundsCase> cases;
  for (const int members : {3, 4, 5, 8, 16, 64, 1024}) {
    for (const Loss& loss : kLosses) cases.push_back({members, loss});
  }
  // The last ones take seconds each.
  std::vector<std::future<std::vector<Cell>>> rows;
  for (const BoundsCase& one : cases) rows.push_back(std::async(std::launch::async, BoundsRow, one));
  Table table("bounds", {"p", "loss", "bound", "r2cc_allreduce", "r2cc_allreduce_k64", "r2cc_allreduce_k64_simulated", "balance", "ours",
                         "ours_schedule", "ours_segments", "ours_over_bound", "ours_allowed_over_bound", "ours_simulated"});
  for (auto& row : rows) table.Add(row.get());
  return table;
}

Table Optcc() {
  Table table("optcc", {"p", "loss", "optcc_percent", "optcc_simulated_percent", "optcc_segments", "r2cc_allreduce_percent",
                        "balance_percent", "ours_percent", "ours_schedule", "bound_percent"});
  for (const int members : {8, 16, 32, 64, 128, 256, 512, 1024}) {
    for (const Loss& loss : {Loss{"1/8", 0.125}, Loss{"1/4", 0.25}, Loss{"3/8", 0.375}, Loss{"1/2", 0.5}}) {
      const plan::Ports ports = OneDegraded(members, loss.lost);
      const plan::Decision decision = plan::Choose(kBytes, ports);
      const plan::Candidate& optcc = Of(decision, plan::ScheduleKind::kOptcc);
      // Above half the bandwidth a plain ring runs beside it, in which not all healthy members do the same: in full or not at all.
      const bool simulate = members <= static_cast<int>(kMembersInFull) || loss.lost >= 0.5;
      table.Add({members,
                 loss.name,
                 {Percent(optcc.ratio_to_ring), 2},
                 simulate ? Cell(Percent(SimulatedCandidate(optcc, kBytes, ports).seconds / decision.ring_s), 2) : Cell(""),
                 static_cast<int>(optcc.segments),
                 {Percent(plan::R2ccAllReduceTime(members, kBytes, kBytesPerS, loss.lost, loss.lost, 0) / decision.ring_s), 2},
                 {Percent(Of(decision, plan::ScheduleKind::kBalance).ratio_to_ring), 2},
                 {Percent(decision.chosen.ratio_to_ring), 2},
                 plan::ScheduleName(decision.chosen.kind),
                 {Percent(decision.bound_s / decision.ring_s), 2}});
    }
  }
  return table;
}

// The published port ran on 5 nodes, one with half its bandwidth, with pieces of two sizes. How much it summed is not published, so neither
// is the number of segments. `paper`: the bound and the paper's (k+1)/k for filling and draining.
Table OptccPort() {
  constexpr int kMembers = 5;
  Table table("optcc_port", {"segments", "paper", "optcc", "optcc_simulated", "direct", "bound"});
  const plan::Ports ports = OneDegraded(kMembers, 0.5);
  const double ring_s = plan::FaultFreeRingTime(kMembers, kBytes, kBytesPerS);
  for (const int segments : {1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 32, 40, 43, 48, 64}) {
    const auto schedule = plan::MakeOptcc(kMembers, kBytes, 0, 0.5, segments);
    const double bound = plan::LowerBoundTime(kBytes, ports.bytes_per_s) / ring_s;
    table.Add({segments,
               {bound * (segments + 1) / segments, 3},
               {plan::OptccTime(kMembers, kBytes, kBytesPerS, 0.5, segments) / ring_s, 3},
               {Simulated(*schedule, plan::PortFabric(ports.bytes_per_s)).time_s / ring_s, 3},
               {plan::DirectTime(kBytes, ports.bytes_per_s, segments) / ring_s, 3},
               {bound, 3}});
  }
  return table;
}

// What 5 us are spent on: once by each step, however many a member has at the same time, or by each message on its port, which then moves
// nothing else (the alpha-beta model with one port).
struct AlphaOf {
  const char* name;
  double step_latency_s;
  double step_overhead_bytes;
};

Table Alpha() {
  constexpr double kAlphaS = 5e-6;
  constexpr AlphaOf kAlphas[] = {{"a step", kAlphaS, 0}, {"a message", 0, kAlphaS * kBytesPerS}};
  Table table("alpha",
              {"alpha", "p", "loss", "size_mib", "schedule", "segments", "predicted_ms", "simulated_ms", "ratio_to_ring", "ratio_to_bound",
               "optcc_ratio_to_bound", "direct_ratio_to_bound", "r2cc_allreduce_ratio_to_bound", "balance_ratio_to_bound"});
  for (const AlphaOf& alpha : kAlphas) {
    for (const int members : {3, 4, 5, 8, 16, 64, 1024}) {
      for (const Loss& loss : kLosses) {
        for (const int size_mib : {64, 256, 1024, 4096}) {
          const uint64_t bytes = size_mib * kMiB;
          plan::Ports ports = OneDegraded(members, loss.lost);
          ports.step_latency_s = alpha.step_latency_s;
          ports.step_overhead_bytes = alpha.step_overhead_bytes;
          const plan::Decision decision = plan::Choose(bytes, ports);
          const auto ratio = [&](plan::ScheduleKind kind) { return Cell(Of(decision, kind).ratio_to_bound, 4); };
          table.Add({alpha.name,
                     members,
                     loss.name,
                     size_mib,
                     plan::ScheduleName(decision.chosen.kind),
                     static_cast<int>(decision.chosen.segments),
                     {decision.chosen.time_s * 1e3, 3},
                     members <= static_cast<int>(kMembersInFull) ? Cell(SimulatedCandidate(decision.chosen, bytes, ports).seconds * 1e3, 3)
                                                                 : Cell(""),
                     {decision.chosen.ratio_to_ring, 4},
                     {decision.chosen.ratio_to_bound, 4},
                     ratio(plan::ScheduleKind::kOptcc),
                     ratio(plan::ScheduleKind::kDirect),
                     ratio(plan::ScheduleKind::kR2ccAllReduce),
                     ratio(plan::ScheduleKind::kBalance)});
        }
      }
    }
  }
  return table;
}

}  // namespace

std::vector<Table> AllReduceTables() { return {Bounds(), Optcc(), OptccPort(), Alpha()}; }

}  // namespace r2cc::figures
