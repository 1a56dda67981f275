#include "client/commands/nic_commands.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "client/commands/values.h"

namespace r2cc::client {
namespace {

// The actions that are possible on many NICs at once.
constexpr char kMany[] = "; 'rail0/*' is a whole rail, 'rack3-*/*' the nodes of a leaf";

struct NicTyped {
  bool force = false;
  bool wait = false;
  bool now = false;
  std::string nic;
  std::string weight;
  std::string job;
  std::string drill_time = "10m";
};

struct ListTyped {
  std::string node;
  std::string node_glob;
  bool bad = false;
  std::vector<std::string> states;
};

Command AddNicAction(CommandTree* tree, Command parent, const std::string& name, const std::string& description, NicTyped* typed) {
  const Command app = tree->Add(parent, name, description);
  app.AddOption("NODE/NIC", &typed->nic, "the NIC, such as node1/rail0").Required();
  return app;
}

absl::StatusOr<Chosen> MakeAction(const NicTyped& typed, v1::NicAction action) {
  const absl::StatusOr<NicName> name = ParseNicName(typed.nic);
  if (!name.ok()) return name.status();
  v1::NicActionRequest act;
  act.set_node(name->node);
  act.set_nic(name->nic);
  if (typed.now && !typed.job.empty())
    return absl::InvalidArgumentError("--now is for all jobs: without it a drain for one job waits for what is in flight");
  act.set_action(action == v1::DRAIN && typed.now ? v1::DRAIN_NOW : action);
  act.set_force(typed.force);
  act.set_job(typed.job);
  if (action == v1::FAIL) {
    const absl::StatusOr<int64_t> drill = ParseDrillTime(typed.drill_time);
    if (!drill.ok()) return absl::InvalidArgumentError(absl::StrCat("--for ", drill.status().message()));
    act.set_drill_ns(*drill);
  }
  if (action == v1::SET_WEIGHT) {
    const absl::StatusOr<uint32_t> permille = ParseWeightPermille(typed.weight);
    if (!permille.ok()) return permille.status();
    act.set_weight_permille(*permille);
  }
  if (typed.wait || typed.nic.find_first_of("*?") != std::string::npos) return Request(ActCommand{act, typed.wait});
  return Request(act);
}

absl::StatusOr<v1::ListNicsRequest> MakeList(const ListTyped& typed) {
  v1::ListNicsRequest list;
  list.set_node(typed.node);
  list.set_bad(typed.bad);
  list.set_node_glob(typed.node_glob);
  for (const std::string& word : typed.states) {
    v1::NicState state = v1::NIC_STATE_UNSPECIFIED;
    if (!v1::NicState_Parse(absl::AsciiStrToUpper(word), &state) || state == v1::NIC_STATE_UNSPECIFIED)
      return absl::InvalidArgumentError(
          absl::StrCat("--state '", word, "' is none of healthy, degraded, suspect, failed, proving, drained, uncabled"));
    list.add_states(state);
  }
  return list;
}

void AddList(CommandTree* tree, Command nic) {
  const auto typed = std::make_shared<ListTyped>();
  const Command list = tree->Add(nic, "list", "every NIC with its state, of all nodes or of one");
  list.AddOption("NODE", &typed->node, "only this node's NICs");
  list.AddOption("--state", &typed->states, "only NICs in this state; may be repeated").Value("STATE").OneAtATime();
  list.AddFlag("--bad", &typed->bad, "only what is not healthy");
  list.AddOption("--node", &typed->node_glob, "only nodes whose name matches, such as 'rack3-*'").Value("GLOB");
  tree->Means(list, [tree, typed]() -> absl::StatusOr<Chosen> {
    const absl::StatusOr<v1::ListNicsRequest> wanted = MakeList(*typed);
    if (!wanted.ok()) return wanted.status();
    if (tree->global().wide()) return Chosen(Request(WideNicsCommand{*wanted}));
    return Chosen(Request(*wanted));
  });
}

}  // namespace

void AddNicCommands(CommandTree* tree) {
  const Command nic = tree->AddGroup(tree->root(), "nic", "list NICs, and move traffic off them");
  AddList(tree, nic);
  const auto typed = std::make_shared<NicTyped>();
  const auto acts = [&](Command app, v1::NicAction action) { tree->Means(app, [typed, action] { return MakeAction(*typed, action); }); };

  const Command why =
      AddNicAction(tree, nic, "why", "the verdict on a NIC: where the fault is, the evidence, what was done, what to do", typed.get());
  tree->Means(why, [typed]() -> absl::StatusOr<Chosen> {
    const absl::StatusOr<NicName> name = ParseNicName(typed->nic);
    if (!name.ok()) return name.status();
    v1::ExplainNicRequest explain;
    explain.set_node(name->node);
    explain.set_nic(name->nic);
    return Request(explain);
  });
  const Command drain =
      AddNicAction(tree, nic, "drain", absl::StrCat("send no new traffic over a NIC; in-flight data completes", kMany), typed.get());
  acts(drain, v1::DRAIN);
  drain.AddFlag("--wait", &typed->wait, "return when nothing travels over it any more");
  const Command undrain = AddNicAction(tree, nic, "undrain", absl::StrCat("take a drain back", kMany), typed.get());
  acts(undrain, v1::UNDRAIN);
  for (const Command app : {drain, undrain})
    app.AddOption("--job", &typed->job, "only for the job with this name in `r2ccctl jobs`; other jobs are not affected").Value("JOB");
  const Command weight =
      AddNicAction(tree, nic, "weight", "limit a NIC's share of the traffic; 1 takes the limit away, 0 forbids the NIC", typed.get());
  weight.AddOption("WEIGHT", &typed->weight, "from 0 to 1 (0.5) or from 0% to 100% (50%)").Required();
  acts(weight, v1::SET_WEIGHT);

  const Command fail = AddNicAction(tree, tree->root(), "fail-nic",
                                    "drill: treat a NIC as dead; jobs send its in-flight data again over other NICs", typed.get());
  fail.AddOption("--for", &typed->drill_time, "when the drill ends automatically: 1s to 24h").Value("TIME").ShowDefault();
  acts(fail, v1::FAIL);
  for (const Command app : {drain, weight, fail})
    app.AddFlag("--force", &typed->force, "also the last NIC of its node that carries traffic");
  acts(AddNicAction(tree, tree->root(), "restore-nic", "end a drill begun with fail-nic before its time", typed.get()), v1::RESTORE);
}

}  // namespace r2cc::client
