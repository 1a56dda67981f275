#include "client/arguments.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "client/client.h"
#include "client/events_sought.h"
#include "client/usage.h"
#include "client/values.h"

namespace r2cc::client {
namespace {

constexpr char kRunDir[] = "/run/r2cc";
constexpr char kCertificates[] = "/etc/r2cc/tls";
// A node's certificate is replaced while it serves, by whatever renews it; an authority is to outlive its machines.
constexpr int kNodeDays = 397;
constexpr int kAuthorityDays = 3650;
constexpr int kDaysMax = 36500;
// Lines that a person takes in at a look.
constexpr uint32_t kStatusNodesMax = 20;

// What the flags and positionals are read into.
struct Typed {
  std::string run_dir = kRunDir;
  std::string socket;
  std::string server;
  std::string certs = kCertificates;
  bool force = false;
  bool wait = false;
  bool bad = false;
  std::vector<std::string> states;
  std::string node_glob;
  std::string output = "table";
  std::string node;
  std::string nic;
  std::string weight;
  std::string peer;
  double interval_s = 1;
  int count = 0;
  bool ended = false;
  std::string job;
  uint32_t uid = 0;
  std::string drill_time = "10m";
  std::vector<std::string> lose;
  std::string size;
  std::string rate = "400Gbit/s";
  std::string step_latency = "1us";
  std::string message_cost = "100ns";
};

// Sets `app` up as one of r2ccctl's (sub-)commands: global flags may stand behind it, and its errors are ours to word.
CLI::App* AddCommand(CLI::App* parent, const std::string& name, const std::string& description) {
  CLI::App* app = parent->add_subcommand(name, description);
  app->fallthrough();
  app->footer("Also here: --run_dir DIR, --socket PATH, --server HOST:PORT, --certs DIR, -o table|json (`r2ccctl --help` explains).");
  return app;
}

CLI::App* AddNicAction(CLI::App* parent, const std::string& name, const std::string& description, Typed* typed) {
  CLI::App* app = AddCommand(parent, name, description);
  app->add_option("NODE/NIC", typed->nic, "the NIC, such as node1/rail0")->required();
  return app;
}

// Of what may be done to many NICs at once.
constexpr char kMany[] = "; 'rail0/*' is a whole rail, 'rack3-*/*' the nodes of a leaf";

CLI::App* AddSimulate(CLI::App* parent, Typed* typed, SimulateCommand* command) {
  CLI::App* app = AddCommand(parent, "simulate", "which schedule an AllReduce would use among degraded nodes, and why; asks no daemon");
  app->add_option("--nodes", command->nodes, "how many nodes: n0, n1, ...")->required();
  app->add_option("--rails", command->rails, "how many rails each has")->required();
  app->add_option("--lose", typed->lose, "rails that a node has lost; may be repeated")
      ->option_text("NODE:HOW_MANY ...")
      ->allow_extra_args(false);
  app->add_option("--size", typed->size, "bytes of the vector, such as 1GiB")->required();
  app->add_option("--rate", typed->rate, "what a rail moves each way")->capture_default_str();
  app->add_option("--step_latency", typed->step_latency, "what a step waits before its first byte moves")->capture_default_str();
  app->add_option("--message_cost", typed->message_cost, "how long a message keeps its port busy beside its bytes")->capture_default_str();
  app->add_option("--plot", command->plot_path, "also write an SVG here: time over size, and what each port does")->option_text("FILE");
  return app;
}

// Fills in `command` from what was typed.
absl::Status ReadSimulate(const Typed& typed, SimulateCommand& command) {
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
  return absl::OkStatus();
}

}  // namespace

Parsed ParseArguments(std::vector<std::string> arguments, absl::Time now, absl::TimeZone zone) {
  Typed typed;
  Request request;
  CLI::App root("Asks and steers r2ccd, the daemon that keeps this node's NICs in view.\nExit codes: 0 done, 1 refused or failed, 2 usage.",
                "r2ccctl");
  root.require_subcommand(1);
  root.fallthrough();
  root.add_option("--run_dir", typed.run_dir, "folder of r2ccd's sockets")->capture_default_str();
  root.add_option("--socket", typed.socket, "r2ccd's control socket (default: RUN_DIR/r2ccd.sock)");
  root.add_option("--server", typed.server, "ask the daemon at HOST:PORT instead, with a certificate")->option_text("HOST:PORT");
  root.add_option("--certs", typed.certs, "with --server: directory of operator.crt (or node.crt), its key and ca.crt")
      ->capture_default_str();
  root.add_option("-o,--output", typed.output, "table for people, json for programs")
      ->check(CLI::IsMember({"table", "json"}))
      ->capture_default_str();

  // Each command makes its request once everything is parsed.
  std::vector<std::pair<CLI::App*, std::function<absl::Status()>>> commands;
  const auto nic_action = [&](v1::NicAction action) {
    return [&typed, &request, action]() -> absl::Status {
      const absl::StatusOr<NicName> name = ParseNicName(typed.nic);
      if (!name.ok()) return name.status();
      v1::NicActionRequest act;
      act.set_node(name->node);
      act.set_nic(name->nic);
      act.set_action(action);
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
      if (typed.wait || typed.nic.find_first_of("*?") != std::string::npos)
        request = ActCommand{act, typed.wait};
      else
        request = act;
      return absl::OkStatus();
    };
  };

  CLI::App* status = AddCommand(&root, "status", "this daemon, its peers and every node's health; of many nodes those that are not well");
  commands.emplace_back(status, [&] {
    v1::StatusRequest ask;
    ask.set_bad(typed.bad);
    ask.set_node_glob(typed.node_glob);
    // A list for programs is whole.
    if (typed.output == "table" && !typed.bad && typed.node_glob.empty()) ask.set_nodes_max(kStatusNodesMax);
    request = ask;
    return absl::OkStatus();
  });

  commands.emplace_back(AddCommand(&root, "health", "whether r2ccd's core answers within a second, by exit code: for probes"), [&] {
    request = HealthCommand();
    return absl::OkStatus();
  });

  CLI::App* nic = AddCommand(&root, "nic", "list and steer NICs");
  nic->require_subcommand(1);
  CLI::App* nic_list = AddCommand(nic, "list", "every NIC with its state, of all nodes or of one");
  nic_list->add_option("NODE", typed.node, "only this node's NICs");
  commands.emplace_back(nic_list, [&]() -> absl::Status {
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
    request = list;
    return absl::OkStatus();
  });
  nic_list->add_option("--state", typed.states, "only NICs in this state; may be repeated")->option_text("STATE")->allow_extra_args(false);
  for (CLI::App* app : {status, nic_list}) {
    app->add_flag("--bad", typed.bad, "only what is not as it should be");
    app->add_option("--node", typed.node_glob, "only nodes whose names fit, such as 'rack3-*'")->option_text("GLOB");
  }
  commands.emplace_back(
      AddNicAction(nic, "why", "the verdict on a NIC: where the fault is, the evidence, what was done, what to do", &typed),
      [&]() -> absl::Status {
        const absl::StatusOr<NicName> name = ParseNicName(typed.nic);
        if (!name.ok()) return name.status();
        v1::ExplainNicRequest explain;
        explain.set_node(name->node);
        explain.set_nic(name->nic);
        request = explain;
        return absl::OkStatus();
      });
  CLI::App* nic_drain =
      AddNicAction(nic, "drain", absl::StrCat("send no new traffic over a NIC; what is in flight ends by itself", kMany), &typed);
  commands.emplace_back(nic_drain, nic_action(v1::DRAIN));
  nic_drain->add_flag("--wait", typed.wait, "return when nothing travels over it any more");
  CLI::App* nic_undrain = AddNicAction(nic, "undrain", absl::StrCat("take a drain back", kMany), &typed);
  commands.emplace_back(nic_undrain, nic_action(v1::UNDRAIN));
  for (CLI::App* app : {nic_drain, nic_undrain})
    app->add_option("--job", typed.job, "for this job alone, by the name that `r2ccctl jobs` shows; others go on as they do")
        ->option_text("JOB");
  CLI::App* nic_weight =
      AddNicAction(nic, "weight", "limit a NIC's share of the traffic; 1 takes the limit away, 0 forbids the NIC", &typed);
  nic_weight->add_option("WEIGHT", typed.weight, "from 0 to 1 (0.5) or from 0% to 100% (50%)")->required();
  commands.emplace_back(nic_weight, nic_action(v1::SET_WEIGHT));

  CLI::App* fail_nic = AddNicAction(&root, "fail-nic", "drill: treat a NIC as dead, abandon what is in flight on it", &typed);
  fail_nic->add_option("--for", typed.drill_time, "when it ends by itself: 1s to 24h")->option_text("TIME")->capture_default_str();
  commands.emplace_back(fail_nic, nic_action(v1::FAIL));
  for (CLI::App* app : {nic_drain, nic_weight, fail_nic})
    app->add_flag("--force", typed.force, "also the last NIC of its node that carries traffic");
  commands.emplace_back(AddNicAction(&root, "restore-nic", "end a drill begun with fail-nic before its time", &typed),
                        nic_action(v1::RESTORE));

  CLI::App* node = AddCommand(&root, "node", "the nodes that this daemon knows");
  node->require_subcommand(1);
  CLI::App* node_forget = AddCommand(node, "forget", "drop a node that has left for good from all daemons' lists");
  node_forget->add_option("NODE", typed.node, "the node")->required();
  commands.emplace_back(node_forget, [&] {
    v1::ForgetNodeRequest forget;
    forget.set_node(typed.node);
    request = forget;
    return absl::OkStatus();
  });

  CertsCommand certs;
  CLI::App* certificates = AddCommand(&root, "certs", "make a cluster's authority and certificates of it; asks no daemon");
  certificates->require_subcommand(1);
  CLI::App* certs_init = AddCommand(certificates, "init", "a new authority: ca.crt, and ca.key, which stays with you");
  CLI::App* certs_issue = AddCommand(certificates, "issue", "a node's directory: node.crt, node.key, ca.crt");
  for (CLI::App* app : {certs_init, certs_issue}) {
    app->add_option("--dir", certs.directory, "directory of the authority")->default_val("r2cc-ca");
    app->add_option("--days", certs.days, "how long it is valid (default: an authority 3650, others 397)")->check(CLI::Range(1, kDaysMax));
  }
  certs_init->add_option("--name", certs.name, "what the authority calls itself");
  certs_issue->add_option("NAME", certs.name, "the node, as its daemon calls itself; or the operator")->required();
  certs_issue->add_flag("--operator", certs.is_operator, "for a person: operator.crt and operator.key, for --certs");
  certs_issue->add_option("--out", certs.out_directory, "directory to write (default: NAME below --dir)")->option_text("DIR");
  commands.emplace_back(certs_init, [&] {
    certs.init = true;
    if (certs.name.empty()) certs.name = "R2CC";
    if (certs.days == 0) certs.days = kAuthorityDays;
    return absl::OkStatus();
  });
  commands.emplace_back(certs_issue, [&] {
    if (certs.days == 0) certs.days = kNodeDays;
    return absl::OkStatus();
  });

  EventsSought sought;
  CLI::App* events = AddCommand(&root, "events", "what happened, oldest first");
  events->add_flag("--follow", sought.follow, "go on with new events until interrupted");
  events->add_option("--after", sought.after, "only events after this sequence number")->option_text("SEQ");
  events->add_option("--since", sought.since, "only events since then: 10m, 2d, or '2026-11-25 03:12'")->option_text("TIME");
  events->add_option("--node", sought.node, "only events about this node, or with it as the other end")->option_text("NODE");
  events->add_option("--nic", sought.nic, "only events about this NIC, or with it as the other end")->option_text("NODE/NIC");
  events->add_option("--kind", sought.kinds, "only events of this kind, such as operator; may be repeated")
      ->option_text("KIND ...")
      ->allow_extra_args(false);
  events->add_option("--last", sought.last, "only the newest so many of these")->option_text("N")->check(CLI::PositiveNumber);
  commands.emplace_back(events, [&]() -> absl::Status {
    const absl::StatusOr<v1::EventsRequest> list = MakeEventsRequest(sought, now, zone);
    if (list.ok()) request = *list;
    return list.status();
  });

  CLI::App* jobs = AddCommand(&root, "jobs", "the jobs attached to this daemon and their traffic per rail");
  jobs->add_flag("--ended", typed.ended, "those that gave up on a peer and ended: which, by which rails, why, after how long");
  jobs->add_flag("--bad", typed.bad, "only those that gave up a rail or a peer, or whose rails are not this node's NICs");
  jobs->add_option("--job", typed.job, "only jobs whose names fit, such as 'train-*'")->option_text("GLOB");
  CLI::Option* uid = jobs->add_option("--uid", typed.uid, "only this user's")->option_text("UID");
  jobs->add_option("--nic", typed.nic, "only those with a rail on this NIC of the node")->option_text("NIC");
  jobs->add_option("--node", typed.node_glob, "only those that talk to nodes whose names fit, such as 'rack3-*'")->option_text("GLOB");
  commands.emplace_back(jobs, [&typed, &request, uid] {
    v1::ListJobsRequest list;
    list.set_ended(typed.ended);
    list.set_bad(typed.bad);
    list.set_job_glob(typed.job);
    if (uid->count() > 0) list.set_uid(typed.uid);
    list.set_nic(typed.nic);
    list.set_node_glob(typed.node_glob);
    request = list;
    return absl::OkStatus();
  });

  CLI::App* plan = AddCommand(&root, "plan", "what the daemon tells the jobs to do, and what it could tell them");
  plan->require_subcommand(1);
  commands.emplace_back(AddCommand(plan, "show", "the plan in force: each NIC's state and weight"), [&] {
    request = v1::GetPlanRequest();
    return absl::OkStatus();
  });

  SimulateCommand simulate;
  CLI::App* plan_simulate = AddSimulate(plan, &typed, &simulate);
  commands.emplace_back(plan_simulate, [&] { return ReadSimulate(typed, simulate); });
  commands.emplace_back(AddCommand(plan, "why", "why each NIC has its weight, and which NICs each GPU of this node goes over"), [&] {
    request = v1::ExplainPlanRequest();
    return absl::OkStatus();
  });

  CLI::App* path = AddCommand(&root, "path", "the rails between two nodes");
  path->require_subcommand(1);
  CLI::App* probe = AddCommand(path, "probe", "the live matrix of probes from one node to another: state, loss, round trip");
  probe->add_option("FROM", typed.node, "the node whose probes are shown")->required();
  probe->add_option("TO", typed.peer, "only towards this node");
  commands.emplace_back(probe, [&] {
    v1::ProbePathsRequest paths;
    paths.set_node(typed.node);
    paths.set_peer(typed.peer);
    request = paths;
    return absl::OkStatus();
  });

  CLI::App* watch = AddCommand(&root, "watch", "a live view of all nodes, their NICs and the last events, until interrupted");
  watch->add_option("--interval", typed.interval_s, "seconds between two pictures")->check(CLI::Range(0.1, 3600.0))->capture_default_str();
  watch->add_option("--count", typed.count, "pictures, then end; 0: until interrupted")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
  commands.emplace_back(watch, [&]() -> absl::Status {
    if (typed.output == "json")
      return absl::InvalidArgumentError("watch is for people; for programs there is `r2ccctl events --follow -o json`");
    request = WatchCommand{static_cast<int>(typed.interval_s * 1000), typed.count};
    return absl::OkStatus();
  });

  std::reverse(arguments.begin(), arguments.end());  // the order CLI11 wants
  try {
    root.parse(arguments);
  } catch (const CLI::CallForHelp&) {
    return Help{root.help()};
  } catch (const CLI::ParseError& error) {
    return UsageError{ExplainUsage(root, error)};
  }
  for (const auto& [app, make_request] : commands)
    if (app->parsed())
      if (const absl::Status status = make_request(); !status.ok()) return UsageError{std::string(status.message())};
  const Output output = typed.output == "json" ? Output::kJson : Output::kTable;
  if (certificates->parsed()) return certs;
  if (plan_simulate->parsed()) return Simulation{std::move(simulate), output};
  return Invocation{std::move(request), typed.socket.empty() ? SocketPath(typed.run_dir) : typed.socket, typed.server, typed.certs, output};
}

}  // namespace r2cc::client
