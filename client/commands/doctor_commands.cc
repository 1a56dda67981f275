#include "client/commands/doctor_commands.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/core/client.h"

namespace r2cc::client {
namespace {

// Each costs some packets a rail, and some seconds where nobody answers.
constexpr size_t kPeersDefault = 4;
constexpr size_t kPeersMax = 64;
// More than any node has NICs.
constexpr size_t kRailsMost = 1024;
// As r2ccd's own default.
constexpr char kStateDir[] = "/var/lib/r2cc";

struct DoctorTyped {
  DoctorCommand command;
  std::string wait;
};

}  // namespace

void AddDoctorCommand(CommandTree* tree) {
  const auto typed = std::make_shared<DoctorTyped>();
  const Command doctor = tree->Add(
      tree->root(), "doctor",
      "what is wrong with this node and its ways to others, a line for each fault with the fix; exit code 1 if this node has one");
  doctor.AddFlag("--all", &typed->command.all, "also the checks that are ok");
  doctor.AddFlag("--job", &typed->command.job, "also the environment of a job that is started in this shell");
  doctor.AddFlag("--no-daemon", &typed->command.without_daemon, "this node runs no r2ccd: check only what a job needs, as --job does");
  doctor.AddOption("--peers", &typed->command.peers_max, "number of other nodes that are tested")
      .Value("N")
      .Default(absl::StrCat(kPeersDefault))
      .Range(size_t{0}, kPeersMax);
  doctor.AddOption("--wait", &typed->wait, "check again until nothing fails, at most for this time: 60s").Value("TIME");
  tree->Means(doctor, [tree, typed]() -> absl::StatusOr<Chosen> {
    DoctorCommand command = typed->command;
    const GlobalFlags& global = tree->global();
    if (!global.server.empty()) return absl::InvalidArgumentError("doctor looks at this machine: run it on the node, without --server");
    absl::Duration wait;
    if (!typed->wait.empty() && (!absl::ParseDuration(typed->wait, &wait) || wait < absl::ZeroDuration() || wait > absl::Hours(1)))
      return absl::InvalidArgumentError(absl::StrCat("--wait '", typed->wait, "' is not a time from 0s to 1h, such as 60s"));
    command.wait_ns = absl::ToInt64Nanoseconds(wait);
    command.json = global.format() == Output::kJson;
    command.run_dir = global.run_dir;
    command.socket_path = global.socket.empty() ? SocketPath(global.run_dir) : global.socket;
    return command;
  });
}

void AddReadyCommand(CommandTree* tree) {
  const auto command = std::make_shared<ReadyCommand>();
  const Command ready = tree->Add(tree->root(), "ready",
                                  "whether a job may start on this node: exit code 0 yes, 1 no, 2 unknown; one line, under a second; "
                                  "faults of other nodes do not count");
  const Option rails = ready.AddOption("--min-rails", &command->rails_min, "number of this node's rails that have to be usable")
                           .Value("N")
                           .Default("1")
                           .Range(size_t{0}, kRailsMost);
  ready.AddFlag("--npd", &command->npd,
                "for the node-problem-detector: the cause in 80 characters; without --min-rails each rail that should work has to");
  tree->Means(ready, [tree, command, rails]() -> absl::StatusOr<Chosen> {
    if (command->npd && rails.count() == 0) command->rails_min = kEachRail;
    const GlobalFlags& global = tree->global();
    if (!global.server.empty()) return absl::InvalidArgumentError("ready is about this node: run it there, without --server");
    command->json = global.format() == Output::kJson;
    command->socket_path = global.socket.empty() ? SocketPath(global.run_dir) : global.socket;
    return *command;
  });
}

void AddHealthEventsCommand(CommandTree* tree) {
  const auto command = std::make_shared<HealthEventsCommand>();
  const Command events = tree->Add(tree->root(), "health-events",
                                   "reports the health of this node's NICs to NVSentinel, until it is ended: a fault that jobs survive is "
                                   "stored only");
  events.AddOption("--nvsentinel", &command->connector, "the Unix socket of the platform connector").Value("PATH").Required();
  events.AddOption("--node", &command->node, "the node's name in Kubernetes; otherwise r2ccd's").Value("NODE");
  tree->Means(events, [tree, command]() -> absl::StatusOr<Chosen> {
    const GlobalFlags& global = tree->global();
    if (!global.server.empty()) return absl::InvalidArgumentError("health-events is about this node: run it there, without --server");
    command->socket_path = global.socket.empty() ? SocketPath(global.run_dir) : global.socket;
    return *command;
  });
}

void AddConditionsCommand(CommandTree* tree) {
  const auto command = std::make_shared<ConditionsCommand>();
  const Command conditions = tree->Add(tree->root(), "conditions",
                                       "keeps the condition R2CCRailDegraded of each node of Kubernetes, and Events of its changes, until "
                                       "it is ended; once in a cluster");
  conditions.AddOption("--api-server", &command->api_server, "host:port of the API server")
      .Value("ADDRESS")
      .Default("kubernetes.default.svc:443");
  conditions.AddOption("--account", &command->account, "a directory with `token` and `ca.crt` of a service account")
      .Value("DIR")
      .Default("/var/run/secrets/kubernetes.io/serviceaccount");
  tree->Means(conditions, [tree, command]() -> absl::StatusOr<Chosen> {
    const GlobalFlags& global = tree->global();
    command->socket_path = global.socket.empty() ? SocketPath(global.run_dir) : global.socket;
    command->server = global.server;
    command->certificates = global.certs;
    return *command;
  });
}

void AddBundleCommand(CommandTree* tree) {
  const auto command = std::make_shared<BundleCommand>();
  const Command bundle = tree->Add(tree->root(), "support-bundle",
                                   "one file with the state of this node, for remote support; it contains no keys; lists its contents");
  bundle.AddOption("--out", &command->out, "the file (default: r2cc-support-NODE-TIME.tar.gz here)").Value("FILE");
  bundle.AddOption("--state_dir", &command->state_dir, "r2ccd's, where the audit is").Default(kStateDir);
  tree->Means(bundle, [tree, command]() -> absl::StatusOr<Chosen> {
    const GlobalFlags& global = tree->global();
    if (!global.server.empty())
      return absl::InvalidArgumentError("support-bundle is about this machine: run it on the node, without --server");
    command->run_dir = global.run_dir;
    command->socket_path = global.socket.empty() ? SocketPath(global.run_dir) : global.socket;
    return *command;
  });
}

}  // namespace r2cc::client
