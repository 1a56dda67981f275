// `r2ccctl plan simulate`: which schedule an AllReduce among degraded nodes would use, and why. Asks no daemon.
#ifndef R2CC_CLIENT_PLAN_SIMULATE_H_
#define R2CC_CLIENT_PLAN_SIMULATE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "client/core/style.h"
#include "plan/collective/choose.h"
#include "plan/collective/seats.h"
#include "plan/schedule/schedule.h"
#include "proto/simulation.pb.h"

namespace r2cc::client {

constexpr uint32_t kSimulatedNodesMax = 4096;
constexpr uint32_t kSimulatedRailsMax = 64;
constexpr uint32_t kSimulatedGpusMax = 64;

// Nodes are called n0, n1, ...
struct SimulateCommand {
  uint32_t nodes = 0;
  uint32_t rails = 0;
  uint32_t gpus = 1;           // of each node; NCCL's ring goes over all of them
  std::vector<uint32_t> lost;  // rails that each node has lost
  uint64_t size_bytes = 0;
  uint64_t rail_bits_per_s = 0;
  double step_latency_s = 0;
  double message_cost_s = 0;  // time for which a message keeps its port busy in addition to its bytes
  std::string plot_path;      // empty: no plot
};

// "n0:2", repeated for one node or several: adds to command.lost. InvalidArgument names what is wrong and the way out.
absl::Status AddLoss(absl::string_view text, SimulateCommand& command);

// InvalidArgument if a value is out of range.
absl::Status CheckCommand(const SimulateCommand& command);

// Longer step lists take longer to simulate than a person at a terminal waits, unless one member of a rotation is simulated for all.
constexpr uint64_t kTransfersMax = 400'000;
uint64_t Transfers(const plan::Schedule& schedule);

plan::Ports PortsOf(const SimulateCommand& command);

// The candidate that libr2cc-nccl.so would choose for a vector of `bytes`: NCCL's tree, in the order that the planner gives its nodes, next
// to `decision`.
v1::ScheduleCandidate SeatCandidate(const plan::SeatNodes& nodes, absl::Span<const std::string> names, uint64_t bytes,
                                    const plan::Ports& ports, const plan::Decision& decision);

// The candidates of the plugin's own AllReduce and a seat in NCCL's tree, the choice among the former, and the chosen step list's simulated
// time. `command` must have passed CheckCommand().
v1::PlanSimulation Answer(const SimulateCommand& command);

std::string FormatSimulation(const SimulateCommand& command, const v1::PlanSimulation& answer, const Style& style);

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_PLAN_SIMULATE_H_
