#include "client/plan/plan_choices.h"

#include <algorithm>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/core/table.h"
#include "client/core/units.h"
#include "client/plan/simulate.h"
#include "plan/model.h"

namespace r2cc::client {
namespace {

constexpr uint64_t kBytes = 256 << 20;
// As `plan simulate` assumes: of a rail, of a step and of a message.
constexpr double kRailBytesPerS = 50e9, kStepLatencyS = 1e-6, kMessageCostS = 100e-9;

struct Node {
  uint32_t nics = 0;
  uint64_t weight = 0;  // left
  uint64_t full = 0;    // without a loss
};

std::map<std::string, Node> NodesOf(const v1::ExplainPlanReply& reply) {
  std::map<std::string, Node> nodes;
  for (const v1::PlanReason& reason : reply.reasons()) {
    const v1::PlannedNic& nic = reason.planned();
    if (nic.state() == v1::UNCABLED) continue;
    Node& node = nodes[nic.node()];
    const uint32_t weight = std::min<uint32_t>(nic.weight_permille(), plan::kFullWeightPermille);
    ++node.nics;
    node.weight += weight;
    node.full += nic.state() == v1::HEALTHY ? weight : plan::kFullWeightPermille;
  }
  return nodes;
}

}  // namespace

std::string FormatAllReduce(const v1::ExplainPlanReply& reply, const Style& style) {
  const std::map<std::string, Node> nodes = NodesOf(reply);
  if (nodes.size() < 2 || nodes.size() > kSimulatedNodesMax) return "";
  plan::SeatNodes seats;
  std::vector<std::string> names;
  plan::Ports ports{.rails = 1, .step_latency_s = kStepLatencyS};
  for (const auto& [name, node] : nodes) {
    names.push_back(name);
    ports.rails = std::max(ports.rails, node.nics);
    seats.kept_permille.push_back(node.full == 0 ? 0 : static_cast<uint32_t>(node.weight * 1000 / node.full));
  }
  const auto [least, most] = std::minmax_element(seats.kept_permille.begin(), seats.kept_permille.end());
  // A node without any rail is in no job.
  if (*least == 0 || *least == 1000) return "";
  ports.healthy_bytes_per_s = kRailBytesPerS * ports.rails;
  ports.step_overhead_bytes = kMessageCostS * ports.healthy_bytes_per_s;
  for (const uint32_t permille : seats.kept_permille) ports.bytes_per_s.push_back(ports.healthy_bytes_per_s * permille / 1000);
  const auto gpus = static_cast<uint32_t>(std::clamp(reply.routes_size(), 1, static_cast<int>(kSimulatedGpusMax)));
  seats.ranks = static_cast<uint32_t>(nodes.size()) * gpus;
  seats.channels = 2 * ports.rails;
  const plan::Decision decision = plan::Choose(kBytes, ports);
  Table table({"ALLREDUCE", Right("TO RING"), "NOTE"});
  const auto row = [&](absl::string_view name, double ratio, const std::string& note) {
    table.AddRow({std::string(name), absl::StrFormat("%.2f", ratio), note});
  };
  for (const plan::Candidate& candidate : decision.candidates)
    if (candidate.kind == plan::ScheduleKind::kBalance) row("balance", candidate.ratio_to_ring, "NCCL's ring over the rails that are left");
  if (decision.chosen.kind != plan::ScheduleKind::kBalance && decision.chosen.kind != plan::ScheduleKind::kRing)
    row(absl::StrCat("collnet, ", plan::ScheduleName(decision.chosen.kind)), decision.chosen.ratio_to_ring, "NCCL_COLLNET_ENABLE=1");
  const v1::ScheduleCandidate seat = SeatCandidate(seats, names, kBytes, ports, decision);
  row("seat", seat.ratio_to_ring(), seat.note());
  return absl::StrCat("AllReduce of ", FormatBytes(kBytes), " among ", nodes.size(), " nodes with ", gpus, gpus == 1 ? " GPU" : " GPUs",
                      " each, over the ring without a fault; r2ccctl plan simulate has other sizes\n\n",
                      table.Render(style.colour, style.width));
}

}  // namespace r2cc::client
