#include "client/commands/node_commands.h"

#include <cstdint>
#include <memory>
#include <string>

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

struct WatchTyped {
  double interval_s = 1;
  int count = 0;
};

}  // namespace

void AddStatusCommands(CommandTree* tree) {
  const auto typed = std::make_shared<StatusTyped>();
  CLI::App* status =
      tree->Add(tree->root(), "status", "this daemon, its peers and every node's health; of many nodes those that are not well");
  status->add_flag("--bad", typed->bad, "only what is not as it should be");
  status->add_option("--node", typed->node_glob, "only nodes whose names fit, such as 'rack3-*'")->option_text("GLOB");
  tree->Means(status, [tree, typed] {
    v1::StatusRequest ask;
    ask.set_bad(typed->bad);
    ask.set_node_glob(typed->node_glob);
    // A list for programs is whole.
    if (tree->global().format() == Output::kTable && !typed->bad && typed->node_glob.empty()) ask.set_nodes_max(kStatusNodesMax);
    return Chosen(Request(ask));
  });
  tree->Means(tree->Add(tree->root(), "health", "whether r2ccd's core answers within a second, by exit code: for probes"),
              [] { return Chosen(Request(HealthCommand())); });
}

void AddNodeCommands(CommandTree* tree) {
  const auto name = std::make_shared<std::string>();
  CLI::App* node = tree->AddGroup(tree->root(), "node", "the nodes that this daemon knows");
  CLI::App* forget = tree->Add(node, "forget", "drop a node that has left for good from all daemons' lists");
  forget->add_option("NODE", *name, "the node")->required();
  tree->Means(forget, [name] {
    v1::ForgetNodeRequest request;
    request.set_node(*name);
    return Chosen(Request(request));
  });
}

void AddEventsCommand(CommandTree* tree) {
  const auto sought = std::make_shared<EventsSought>();
  CLI::App* events = tree->Add(tree->root(), "events", "what happened, oldest first");
  events->add_flag("--follow", sought->follow, "go on with new events until interrupted");
  events->add_option("--after", sought->after, "only events after this sequence number")->option_text("SEQ");
  events->add_option("--since", sought->since, "only events since then: 10m, 2d, or '2026-11-25 03:12'")->option_text("TIME");
  events->add_option("--node", sought->node, "only events about this node, or with it as the other end")->option_text("NODE");
  events->add_option("--nic", sought->nic, "only events about this NIC, or with it as the other end")->option_text("NODE/NIC");
  events->add_option("--kind", sought->kinds, "only events of this kind, such as operator; may be repeated")
      ->option_text("KIND ...")
      ->allow_extra_args(false);
  events->add_option("--last", sought->last, "only the newest so many of these")->option_text("N")->check(CLI::PositiveNumber);
  tree->Means(events, [tree, sought]() -> absl::StatusOr<Chosen> {
    const absl::StatusOr<v1::EventsRequest> list = MakeEventsRequest(*sought, tree->now(), tree->zone());
    if (!list.ok()) return list.status();
    return Request(*list);
  });
}

void AddPathCommands(CommandTree* tree) {
  const auto typed = std::make_shared<PathTyped>();
  CLI::App* path = tree->AddGroup(tree->root(), "path", "the rails between two nodes");
  CLI::App* probe = tree->Add(path, "probe", "the live matrix of probes from one node to another: state, loss, round trip");
  probe->add_option("FROM", typed->node, "the node whose probes are shown")->required();
  probe->add_option("TO", typed->peer, "only towards this node");
  tree->Means(probe, [typed] {
    v1::ProbePathsRequest paths;
    paths.set_node(typed->node);
    paths.set_peer(typed->peer);
    return Chosen(Request(paths));
  });
}

void AddWatchCommand(CommandTree* tree) {
  const auto typed = std::make_shared<WatchTyped>();
  CLI::App* watch = tree->Add(tree->root(), "watch", "a live view of all nodes, their NICs and the last events, until interrupted");
  watch->add_option("--interval", typed->interval_s, "seconds between two pictures")->check(CLI::Range(0.1, 3600.0))->capture_default_str();
  watch->add_option("--count", typed->count, "pictures, then end; 0: until interrupted")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
  tree->Means(watch, [tree, typed]() -> absl::StatusOr<Chosen> {
    if (tree->global().format() == Output::kJson)
      return absl::InvalidArgumentError("watch is for people; for programs there is `r2ccctl events --follow -o json`");
    return Request(WatchCommand{static_cast<int>(typed->interval_s * 1000), typed->count});
  });
}

}  // namespace r2cc::client
