#include "client/commands/node_commands.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/commands/events_sought.h"

namespace r2cc::client {
namespace {

// Lines that a person takes in at a look.
constexpr uint32_t kStatusNodesMax = 20;

struct StatusTyped {
  bool bad = false;
  std::string node_glob;
};

struct PathTyped {
  std::string node;
  std::string peer;
};

struct HealthTyped {
  double within_s = 0.8;
};

struct DisagreementTyped {
  std::string run;
  std::string point;
  size_t step = 0;
  std::vector<std::string> ranks;
};

struct WatchTyped {
  double interval_s = 1;
  int count = 0;
};

}  // namespace

void AddStatusCommands(CommandTree* tree) {
  const auto typed = std::make_shared<StatusTyped>();
  const Command status = tree->Add(tree->root(), "status",
                                   "this daemon, its peers and every node's health; if there are many nodes, those that are not healthy");
  status.AddFlag("--bad", &typed->bad, "only what is not healthy");
  status.AddOption("--node", &typed->node_glob, "only nodes whose name matches, such as 'rack3-*'").Value("GLOB");
  tree->Means(status, [tree, typed] {
    v1::StatusRequest ask;
    ask.set_bad(typed->bad);
    ask.set_node_glob(typed->node_glob);
    // A list for programs is whole.
    if (tree->global().format() == Output::kTable && !typed->bad && typed->node_glob.empty()) ask.set_nodes_max(kStatusNodesMax);
    return Chosen(Request(ask));
  });
  const auto asked = std::make_shared<HealthTyped>();
  const Command health = tree->Add(tree->root(), "health", "whether r2ccd's core answers within a second, by exit code: for probes");
  health.AddOption("--within", &asked->within_s, "seconds that it has for that").Range(0.1, 3600.0).ShowDefault();
  tree->Means(health, [asked] { return Chosen(Request(HealthCommand{static_cast<int>(asked->within_s * 1000)})); });
}

void AddNodeCommands(CommandTree* tree) {
  const auto name = std::make_shared<std::string>();
  const Command node = tree->AddGroup(tree->root(), "node", "the nodes that this daemon knows");
  const Command forget = tree->Add(node, "forget", "drop a node that has left for good from all daemons' lists");
  forget.AddOption("NODE", name.get(), "the node").Required();
  tree->Means(forget, [name] {
    v1::ForgetNodeRequest request;
    request.set_node(*name);
    return Chosen(Request(request));
  });
}

// More than a daemon keeps.
constexpr size_t kLastMost = 1'000'000;

void AddEventsCommand(CommandTree* tree) {
  const auto sought = std::make_shared<EventsSought>();
  const Command events = tree->Add(tree->root(), "events", "what happened, oldest first");
  events.AddFlag("--follow", &sought->follow, "continue with new events until interrupted");
  events.AddOption("--after", &sought->after, "only events after this sequence number").Value("SEQ");
  events.AddOption("--since", &sought->since, "only events since then: 10m, 2d, or '2026-11-25 03:12'").Value("TIME");
  events.AddOption("--node", &sought->node, "only events about this node, or with it as the other end").Value("NODE");
  events.AddOption("--nic", &sought->nic, "only events about this NIC, or with it as the other end").Value("NODE/NIC");
  events.AddOption("--kind", &sought->kinds, "only events of this kind, which may be repeated: " + EventKindsText())
      .Value("KIND ...")
      .OneAtATime();
  events.AddOption("--last", &sought->last, "only the newest N of these").Value("N").Range(size_t{1}, kLastMost);
  events
      .AddOption("--run", &sought->run,
                 "with --follow: run this program for each event, one after the other, with the event as JSON on its standard input; it is "
                 "killed after 30 s")
      .Value("PROGRAM");
  tree->Means(events, [tree, sought]() -> absl::StatusOr<Chosen> {
    const absl::StatusOr<v1::EventsRequest> list = MakeEventsRequest(*sought, tree->now(), tree->zone());
    if (!list.ok()) return list.status();
    if (!sought->run.empty() && !list->follow()) return absl::InvalidArgumentError("--run is for --follow");
    if (!sought->run.empty()) return Request(HookCommand{*list, sought->run});
    return Request(*list);
  });
}

void AddDisagreementCommand(CommandTree* tree) {
  const auto typed = std::make_shared<DisagreementTyped>();
  const Command command = tree->Add(tree->root(), "report-disagreement",
                                    "report that tensors of ranks differ, as an event; `r2cc-observe agree --report` runs it");
  command.AddOption("RUN", &typed->run, "the run of the tensor taps").Required();
  command.AddOption("--step", &typed->step, "the first step that differs").Value("N").Required();
  command.AddOption("--point", &typed->point, "the tap that differs").Value("POINT").Required();
  command.AddOption("--rank", &typed->ranks, "a rank that differs from the others, which may be repeated")
      .Value("RANK ...")
      .OneAtATime()
      .Required();
  tree->Means(command, [typed] {
    v1::DisagreementRequest request;
    request.set_run(typed->run);
    request.set_step(typed->step);
    request.set_point(typed->point);
    for (const std::string& rank : typed->ranks) request.add_ranks(rank);
    return Chosen(Request(request));
  });
}

void AddPathCommands(CommandTree* tree) {
  const auto typed = std::make_shared<PathTyped>();
  const Command path = tree->AddGroup(tree->root(), "path", "the rails between two nodes");
  const Command probe = tree->Add(path, "probe", "the live matrix of probes from one node to another: state, loss, round trip");
  probe.AddOption("FROM", &typed->node, "the node whose probes are shown, or an address of it").Required();
  probe.AddOption("TO", &typed->peer, "only towards this node, or the one with this address");
  tree->Means(probe, [typed] {
    v1::ProbePathsRequest paths;
    paths.set_node(typed->node);
    paths.set_peer(typed->peer);
    return Chosen(Request(paths));
  });
}

void AddWatchCommand(CommandTree* tree) {
  const auto typed = std::make_shared<WatchTyped>();
  const Command watch = tree->Add(tree->root(), "watch", "a live view of all nodes, their NICs and the last events, until interrupted");
  watch.AddOption("--interval", &typed->interval_s, "seconds between two pictures").Range(0.1, 3600.0).ShowDefault();
  watch.AddOption("--count", &typed->count, "pictures, then end; 0: until interrupted").Range(0, 1'000'000).ShowDefault();
  tree->Means(watch, [tree, typed]() -> absl::StatusOr<Chosen> {
    if (tree->global().format() == Output::kJson)
      return absl::InvalidArgumentError("watch is for people; for programs there is `r2ccctl events --follow -o json`");
    return Request(WatchCommand{static_cast<int>(typed->interval_s * 1000), typed->count});
  });
}

}  // namespace r2cc::client
