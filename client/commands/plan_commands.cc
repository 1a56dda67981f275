#include "client/commands/plan_commands.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/commands/values.h"
#include "client/plan/simulate.h"

namespace r2cc::client {
namespace {

struct SimulateTyped {
  SimulateCommand command;
  std::vector<std::string> lose;
  std::string size;
  std::string rate = "400Gbit/s";
  std::string step_latency = "1us";
  std::string message_cost = "100ns";
};

absl::StatusOr<Chosen> MakeSimulate(const SimulateTyped& typed) {
  SimulateCommand command = typed.command;
  if (const absl::Status status = CheckCommand(command); !status.ok()) return status;
  for (const std::string& loss : typed.lose)
    if (const absl::Status status = AddLoss(loss, command); !status.ok()) return status;
  const auto with_flag = [](absl::string_view flag, const absl::Status& status) {
    return absl::InvalidArgumentError(absl::StrCat(flag, " ", status.message()));
  };
  const absl::StatusOr<uint64_t> size = ParseBytes(typed.size);
  if (!size.ok()) return with_flag("--size", size.status());
  const absl::StatusOr<uint64_t> rate = ParseBitRate(typed.rate);
  if (!rate.ok()) return with_flag("--rate", rate.status());
  const absl::StatusOr<double> latency = ParseShortTime(typed.step_latency);
  if (!latency.ok()) return with_flag("--step_latency", latency.status());
  const absl::StatusOr<double> cost = ParseShortTime(typed.message_cost);
  if (!cost.ok()) return with_flag("--message_cost", cost.status());
  command.size_bytes = *size;
  command.rail_bits_per_s = *rate;
  command.step_latency_s = *latency;
  command.message_cost_s = *cost;
  return command;
}

void AddSimulate(CommandTree* tree, Command plan) {
  const auto typed = std::make_shared<SimulateTyped>();
  const Command app = tree->Add(plan, "simulate", "which schedule an AllReduce would use among degraded nodes, and why; asks no daemon");
  app.AddOption("--nodes", &typed->command.nodes, "how many nodes: n0, n1, ...").Required();
  app.AddOption("--rails", &typed->command.rails, "how many rails each has").Required();
  app.AddOption("--gpus", &typed->command.gpus, "of each node: NCCL's ring goes over all of them").ShowDefault();
  app.AddOption("--lose", &typed->lose, "rails that a node has lost; may be repeated").Value("NODE:HOW_MANY ...").OneAtATime();
  app.AddOption("--size", &typed->size, "bytes of the vector, such as 1GiB").Required();
  app.AddOption("--rate", &typed->rate, "what a rail moves each way").ShowDefault();
  app.AddOption("--step_latency", &typed->step_latency, "what a step waits before its first byte moves").ShowDefault();
  app.AddOption("--message_cost", &typed->message_cost, "how long a message keeps its port busy in addition to its bytes").ShowDefault();
  app.AddOption("--plot", &typed->command.plot_path, "also write an SVG here: time over size, and what each port does").Value("FILE");
  tree->Means(app, [typed] { return MakeSimulate(*typed); });
}

}  // namespace

void AddPlanCommands(CommandTree* tree) {
  const Command plan =
      tree->AddGroup(tree->root(), "plan", "the weights that the daemon publishes to the jobs, and schedules that jobs could use");
  tree->Means(tree->Add(plan, "show", "the plan in force: each NIC's state and weight"),
              [] { return Chosen(Request(v1::GetPlanRequest())); });
  AddSimulate(tree, plan);
  tree->Means(
      tree->Add(plan, "why",
                "why each NIC has its weight, which NICs each GPU of this node uses, and, if a NIC is lost, how an AllReduce reacts"),
      [] { return Chosen(Request(v1::ExplainPlanRequest())); });
}

}  // namespace r2cc::client
