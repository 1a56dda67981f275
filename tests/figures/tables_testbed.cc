// R2CC's published testbed: 3 servers of 2 GPUs and 3 rails of 10 Gb/s, one rail of one server lost, AllReduce of 4 GiB. Run as step lists
// on that fabric. The rails' usable rate is calibrated on the published healthy time, the bytes on the wire on the healthy count.
#include <memory>
#include <vector>

#include "plan/collective/choose.h"
#include "plan/schedule/cost.h"
#include "plan/schedule/generators.h"
#include "plan/simulate/ports_fabric.h"
#include "tests/figures/simulated.h"
#include "tests/figures/tables.h"

namespace r2cc::figures {
namespace {

constexpr int kServers = 3;
constexpr int kRails = 3;
constexpr uint32_t kGpus = 6;
constexpr uint64_t kBytes = 4ULL << 30;
constexpr double kLost = 1.0 / 3;
constexpr double kMiB = 1 << 20;
// Published, without a fault.
constexpr double kHealthyS = 2.03;
constexpr double kHealthyReceivedMiB = 7032;

double RailBytesPerS() { return plan::FaultFreeRingTime(kGpus, kBytes, kRails) / kHealthyS; }

plan::FabricModel TestbedFabric(plan::RailSharing use, bool hit) {
  plan::FabricModel fabric{.members_per_server = 2, .use = use};
  fabric.rails_bytes_per_s.assign(kServers, std::vector<double>(kRails, RailBytesPerS()));
  if (hit) fabric.rails_bytes_per_s[0][1] = 0;
  return fabric;
}

plan::Ports ServerPorts() {
  const double server = kRails * RailBytesPerS();
  return {.bytes_per_s = {server * (1 - kLost), server, server}, .healthy_bytes_per_s = server, .rails = kRails};
}

std::unique_ptr<plan::Schedule> Ring() { return plan::MakeRing(kGpus, kBytes, {}, kRails); }

std::unique_ptr<plan::Schedule> R2cc(uint32_t chunks) { return plan::MakeR2ccAllReduce(kGpus, kBytes, {0, 1}, kLost, kLost, chunks); }

Table Times() {
  Table table("testbed", {"scheme", "chunks", "seconds", "ratio", "formula"});
  const double healthy_s = Simulated(*Ring(), TestbedFabric(plan::RailSharing::kPinned, false)).time_s;
  const auto add = [&](const char* scheme, Cell chunks, double seconds, Cell formula) {
    table.Add({scheme, chunks, {seconds, 3}, {seconds / healthy_s, 3}, formula});
  };
  add("healthy", "-", healthy_s, {1, 4});
  add("migration only", "-", Simulated(*Ring(), TestbedFabric(plan::RailSharing::kPinned, true)).time_s, {2, 4});
  add("Balance", "-", Simulated(*Ring(), TestbedFabric(plan::RailSharing::kPooled, true)).time_s, {1 / (1 - kLost), 4});
  for (const int chunks : {1, 2, 4, 8, 16}) {
    const double formula_s = plan::R2ccAllReduceTime(kGpus, kBytes, kRails * RailBytesPerS(), kLost, kLost, chunks, 0, 2);
    add("R2CC-AllReduce", chunks, Simulated(*R2cc(chunks), TestbedFabric(plan::RailSharing::kPooled, true)).time_s,
        {formula_s / healthy_s, 4});
  }
  // Servers are the members: their two GPUs sum inside first.
  const plan::Decision ours = plan::Choose(kBytes, ServerPorts());
  add("ours", static_cast<int>(ours.chosen.segments), SimulatedCandidate(ours.chosen, kBytes, ServerPorts()).seconds,
      {ours.chosen.time_s / healthy_s, 4});
  return table;
}

Table TrafficOfServers() {
  Table table("testbed_traffic", {"scheme", "degraded_mib", "others_mib"});
  const auto healthy = Simulated(*Ring(), TestbedFabric(plan::RailSharing::kPinned, false)).received_bytes;
  const double wire_mib = kHealthyReceivedMiB / healthy[0];  // headers included
  const auto add = [&](const char* scheme, const std::vector<double>& received) {
    table.Add({scheme, {received[0] * wire_mib, 0}, {(received[1] + received[2]) / 2 * wire_mib, 0}});
  };
  add("healthy", healthy);
  add("Balance", Simulated(*Ring(), TestbedFabric(plan::RailSharing::kPooled, true)).received_bytes);
  add("R2CC-AllReduce", Simulated(*R2cc(4), TestbedFabric(plan::RailSharing::kPooled, true)).received_bytes);
  const plan::Decision ours = plan::Choose(kBytes, ServerPorts());
  const auto schedule = plan::MakeCandidate(ours.chosen, kBytes, ServerPorts());
  add("ours", Simulated(*schedule, plan::FabricOf(ServerPorts(), ours.chosen.kind)).received_bytes);
  return table;
}

// The AllReduce that is running when the rail dies. Nothing is lost on the way and nobody waits here: only what bandwidth costs.
Table Hit() {
  Table table("testbed_hit", {"received_before", "migration_s", "balance_s", "ours_s"});
  for (const double share : {0.260, 0.677}) {
    const std::vector<plan::RailChange> changes{{.time_s = share * kHealthyS, .server = 0, .rail = 1, .bytes_per_s = 0}};
    const auto hit_s = [&](const plan::Schedule& schedule, const plan::FabricModel& fabric) {
      return Cell(Simulated(schedule, fabric, {.changes = changes}).time_s, 3);
    };
    // What the planner would have taken had nothing been lost: a schedule is not changed while it runs.
    plan::Ports healthy = ServerPorts();
    healthy.bytes_per_s[0] = healthy.healthy_bytes_per_s;
    const plan::Decision ours = plan::Choose(kBytes, healthy);
    plan::FabricModel fabric = TestbedFabric(plan::RailSharing::kPooled, false);
    fabric.members_per_server = 1;
    table.Add({{share, 3},
               hit_s(*Ring(), TestbedFabric(plan::RailSharing::kPinned, false)),
               hit_s(*Ring(), TestbedFabric(plan::RailSharing::kPooled, false)),
               hit_s(*plan::MakeCandidate(ours.chosen, kBytes, healthy), fabric)});
  }
  return table;
}

// Four servers of 8 rails, one of which has lost one: large messages, throughput of what it was without the loss.
Table Collectives() {
  constexpr int kMembers = 4;
  Table table("collectives", {"collective", "schedule", "percent_of_healthy"});
  plan::Ports ports{.bytes_per_s = std::vector<double>(kMembers, 400e9), .healthy_bytes_per_s = 400e9, .rails = 8};
  const plan::Decision healthy = plan::Choose(kBytes, ports);
  const auto fabric = [&] { return plan::FabricOf(ports, plan::ScheduleKind::kBalance); };
  const std::vector<double> even(kMembers, 1);
  const auto half_s = [&](plan::Collective half) { return Simulated(*plan::MakeRingHalf(half, kBytes, even), fabric()).time_s; };
  const double scatter_s = half_s(plan::Collective::kReduceScatter);
  const double gather_s = half_s(plan::Collective::kAllGather);
  const double healthy_s = SimulatedCandidate(healthy.chosen, kBytes, ports).seconds;
  const double ring_s = Simulated(*plan::MakeRing(kMembers, kBytes), fabric()).time_s;
  ports.bytes_per_s[0] *= 7.0 / 8;
  const plan::Decision hit = plan::Choose(kBytes, ports);
  const auto add = [&](const char* collective, const char* schedule, double before_s, double after_s) {
    table.Add({collective, schedule, {before_s / after_s * 100, 1}});
  };
  add("ReduceScatter", "ring; Balance", scatter_s, half_s(plan::Collective::kReduceScatter));
  add("AllGather", "ring; Balance", gather_s, half_s(plan::Collective::kAllGather));
  add("AllReduce", "ring; Balance", ring_s, Simulated(*plan::MakeRing(kMembers, kBytes), fabric()).time_s);
  add("AllReduce", plan::ScheduleName(hit.chosen.kind), healthy_s, SimulatedCandidate(hit.chosen, kBytes, ports).seconds);
  return table;
}

}  // namespace

std::vector<Table> TestbedTables() { return {Times(), TrafficOfServers(), Hit(), Collectives()}; }

}  // namespace r2cc::figures
