#include "client/plan/simulate.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "client/core/table.h"
#include "client/core/units.h"
#include "plan/simulate/ports_fabric.h"
#include "plan/simulate/simulate.h"

namespace r2cc::client {
namespace {

std::string NodeName(uint32_t node) { return absl::StrCat("n", node); }

// 0 if the list is too long.
double SimulatedTime(const plan::Schedule& schedule, const plan::FabricModel& fabric) {
  if (plan::SimulateResult result = plan::Simulate(schedule, fabric, {.use_rotation = true}); result.error.empty()) return result.time_s;
  if (Transfers(schedule) > kTransfersMax) return 0;
  return plan::Simulate(schedule, fabric).time_s;
}

// The planner numbers members; here they are nodes.
std::string WithNodeNames(const std::string& text) { return absl::StrReplaceAll(text, {{"member ", "n"}}); }

std::string SeatNote(const plan::SeatNodes& nodes, absl::Span<const std::string> names, const plan::SeatDecision& seat) {
  if (nodes.kept_permille.size() < 3) return "the tree of two nodes has no slack: declines";
  if (seat.order.empty()) return "in NCCL's tree no seat gains 3 % over NCCL's own choice: declines";
  const uint32_t seated = seat.order[plan::FirstSeat(static_cast<uint32_t>(names.size()))];
  return absl::StrCat(names[seated], " has a free seat in NCCL's tree; ", absl::StrFormat("%.2f", seat.over_usual),
                      " of NCCL's own time, from ", FormatBytes(seat.bytes_min), " on");
}

std::string Seconds(double seconds) {
  if (seconds < 1e-3) return absl::StrFormat("%.2f us", seconds * 1e6);
  if (seconds < 1) return absl::StrFormat("%.3f ms", seconds * 1e3);
  return absl::StrFormat("%.3f s", seconds);
}

}  // namespace

v1::ScheduleCandidate SeatCandidate(const plan::SeatNodes& nodes, absl::Span<const std::string> names, uint64_t bytes,
                                    const plan::Ports& ports, const plan::Decision& decision) {
  const auto count = static_cast<uint32_t>(nodes.kept_permille.size());
  const plan::SeatDecision seat = plan::DecideSeats(nodes);
  const std::vector<uint32_t> order = seat.order.empty() ? plan::SeatOrder(nodes) : seat.order;
  v1::ScheduleCandidate row;
  row.set_schedule("seat");
  row.set_segments(nodes.channels / 2);
  row.set_time_s(plan::TreeTime(nodes, order) * plan::TreeFill(bytes, count, nodes.channels) * static_cast<double>(bytes) /
                     ports.healthy_bytes_per_s +
                 plan::TreeHops(count) * ports.step_latency_s);
  if (decision.ring_s > 0) row.set_ratio_to_ring(row.time_s() / decision.ring_s);
  if (decision.bound_s > 0) row.set_ratio_to_bound(row.time_s() / decision.bound_s);
  row.set_note(SeatNote(nodes, names, seat));
  return row;
}

uint64_t Transfers(const plan::Schedule& schedule) {
  uint64_t transfers = 0;
  for (uint32_t member = 0; member < schedule.members(); ++member)
    for (uint32_t lane = 0; lane < schedule.Lanes(member); ++lane) transfers += schedule.Sends(member, lane);
  return transfers;
}

absl::Status AddLoss(absl::string_view text, SimulateCommand& command) {
  const size_t colon = text.find(':');
  uint32_t node = 0;
  uint32_t rails = 0;
  if (colon == absl::string_view::npos || text.empty() || text[0] != 'n' || !absl::SimpleAtoi(text.substr(1, colon - 1), &node) ||
      !absl::SimpleAtoi(text.substr(colon + 1), &rails))
    return absl::InvalidArgumentError(absl::StrCat("--lose '", text, "' is not NODE:HOW_MANY, such as n0:2"));
  if (node >= command.nodes)
    return absl::InvalidArgumentError(
        absl::StrCat("--lose '", text, "': there is no node n", node, "; the nodes are n0 to ", NodeName(command.nodes - 1)));
  command.lost.resize(command.nodes, 0);
  if (rails >= command.rails || command.lost[node] + rails >= command.rails)
    return absl::InvalidArgumentError(absl::StrCat("--lose '", text, "' leaves ", NodeName(node), " without a rail; of ", command.rails,
                                                   " it may lose at most ", command.rails - 1));
  command.lost[node] += rails;
  return absl::OkStatus();
}

absl::Status CheckCommand(const SimulateCommand& command) {
  const auto out_of_range = [](absl::string_view flag, auto value, auto least, auto most) {
    return absl::InvalidArgumentError(absl::StrCat(flag, " ", value, " is not between ", least, " and ", most));
  };
  if (command.nodes < 2 || command.nodes > kSimulatedNodesMax) return out_of_range("--nodes", command.nodes, 2, kSimulatedNodesMax);
  if (command.rails < 1 || command.rails > kSimulatedRailsMax) return out_of_range("--rails", command.rails, 1, kSimulatedRailsMax);
  if (command.gpus < 1 || command.gpus > kSimulatedGpusMax) return out_of_range("--gpus", command.gpus, 1, kSimulatedGpusMax);
  return absl::OkStatus();
}

plan::Ports PortsOf(const SimulateCommand& command) {
  const double rail = static_cast<double>(command.rail_bits_per_s) / 8;
  plan::Ports ports;
  ports.healthy_bytes_per_s = rail * command.rails;
  ports.rails = command.rails;
  for (uint32_t node = 0; node < command.nodes; ++node)
    ports.bytes_per_s.push_back(rail * (command.rails - (node < command.lost.size() ? command.lost[node] : 0)));
  ports.step_latency_s = command.step_latency_s;
  ports.step_overhead_bytes = command.message_cost_s * ports.healthy_bytes_per_s;
  return ports;
}

v1::PlanSimulation Answer(const SimulateCommand& command) {
  const plan::Ports ports = PortsOf(command);
  const plan::Decision decision = plan::Choose(command.size_bytes, ports);
  v1::PlanSimulation answer;
  answer.set_chosen(plan::ScheduleName(decision.chosen.kind));
  answer.set_bound_ratio(decision.chosen.ratio_to_bound);
  for (const plan::Candidate& candidate : decision.candidates) {
    v1::ScheduleCandidate* row = answer.add_candidates();
    row->set_schedule(plan::ScheduleName(candidate.kind));
    row->set_time_s(candidate.time_s);
    row->set_ratio_to_ring(candidate.ratio_to_ring);
    row->set_ratio_to_bound(candidate.ratio_to_bound);
    row->set_segments(candidate.segments);
    row->set_note(WithNodeNames(candidate.note));
  }
  plan::SeatNodes nodes{.ranks = command.nodes * command.gpus, .channels = 2 * command.rails};
  std::vector<std::string> names;
  for (uint32_t node = 0; node < command.nodes; ++node) {
    nodes.kept_permille.push_back(1000 - (node < command.lost.size() ? command.lost[node] : 0) * 1000 / command.rails);
    names.push_back(NodeName(node));
  }
  *answer.add_candidates() = SeatCandidate(nodes, names, command.size_bytes, ports, decision);
  answer.set_why(WithNodeNames(decision.why));
  answer.set_ring_time_s(decision.ring_s);
  answer.set_bound_time_s(decision.bound_s);
  answer.set_simulated_time_s(
      SimulatedTime(*plan::MakeCandidate(decision.chosen, command.size_bytes, ports), plan::FabricOf(ports, decision.chosen.kind)));
  answer.set_size_bytes(command.size_bytes);
  answer.set_nodes(command.nodes);
  answer.set_rails(command.rails);
  for (uint32_t node = 0; node < command.lost.size(); ++node) {
    if (command.lost[node] == 0) continue;
    v1::LostRails* lost = answer.add_lost();
    lost->set_node(NodeName(node));
    lost->set_rails(command.lost[node]);
  }
  return answer;
}

std::string FormatSimulation(const SimulateCommand& command, const v1::PlanSimulation& answer, const Style& style) {
  std::string text = absl::StrCat("AllReduce of ", FormatBytes(command.size_bytes), " among ", command.nodes, " nodes with ", command.rails,
                                  command.rails == 1 ? " rail" : " rails", " of ", FormatRate(command.rail_bits_per_s), "; ");
  if (answer.lost().empty()) {
    absl::StrAppend(&text, "nothing is lost\n");
  } else {
    absl::StrAppend(
        &text, "lost: ",
        absl::StrJoin(answer.lost(), ", ",
                      [](std::string* out, const v1::LostRails& lost) { absl::StrAppend(out, lost.node(), ":", lost.rails()); }),
        "\n");
  }
  absl::StrAppend(&text, "fault-free ring ", Seconds(answer.ring_time_s()), ", lower bound ", Seconds(answer.bound_time_s()),
                  "; a step waits ", Seconds(command.step_latency_s), ", a message keeps its port busy for ",
                  Seconds(command.message_cost_s), "\n\n");
  Table table({"SCHEDULE", Right("SEGMENTS"), Right("PREDICTED"), Right("TO RING"), Right("TO BOUND"), "NOTE"});
  for (const v1::ScheduleCandidate& candidate : answer.candidates()) {
    const bool chosen = candidate.schedule() == answer.chosen();
    table.AddRow({{candidate.schedule(), chosen ? Colour::kGreen : Colour::kNone},
                  absl::StrCat(candidate.segments()),
                  Seconds(candidate.time_s()),
                  absl::StrFormat("%.4f", candidate.ratio_to_ring()),
                  absl::StrFormat("%.4f", candidate.ratio_to_bound()),
                  candidate.note()});
  }
  absl::StrAppend(&text, table.Render(style.colour, style.width), "\nchosen: ", answer.why(), "\n");
  if (answer.simulated_time_s() > 0)
    absl::StrAppend(&text, "its step list takes ", Seconds(answer.simulated_time_s()), " when simulated\n");
  return text;
}

}  // namespace r2cc::client
