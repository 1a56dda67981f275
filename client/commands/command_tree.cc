#include "client/commands/command_tree.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/core/release.h"
#include "client/commands/certs_commands.h"
#include "client/commands/completion_commands.h"
#include "client/commands/config_commands.h"
#include "client/commands/doctor_commands.h"
#include "client/commands/job_commands.h"
#include "client/commands/nic_commands.h"
#include "client/commands/node_commands.h"
#include "client/commands/plan_commands.h"
#include "client/core/client.h"

namespace r2cc::client {
namespace {

constexpr char kCertificates[] = "/etc/r2cc/tls";

}  // namespace

CommandTree::CommandTree(absl::Time now, absl::TimeZone zone)
    : now_(now),
      zone_(zone),
      global_{kRunDir, "", "", kCertificates, "table"},
      program_(
          "r2ccctl",
          "Queries and commands r2ccd, the daemon that watches this node's NICs.\nExit codes: 0 done, 1 refused or failed, 2 usage.",
          // The control socket's protocol has its version in its package's name.
          absl::StrCat("r2ccctl ", ReleaseAndRevision(), "\nprotocols: control ", v1::StatusRequest::descriptor()->file()->package())) {
  const Command root = program_.root();
  root.AddOption("--run_dir", &global_.run_dir, "r2ccd's run directory").ShowDefault();
  root.AddOption("--socket", &global_.socket, "r2ccd's control socket (default: RUN_DIR-control/r2ccd.sock)");
  root.AddOption("--server", &global_.server, "ask the daemon at HOST:PORT instead, with a certificate").Value("HOST:PORT");
  root.AddOption("--certs", &global_.certs, "with --server: directory of operator.crt (or node.crt), its key and ca.crt").ShowDefault();
  root.AddOption("-o,--output", &global_.output, "table for people, json for programs; wide: `nic list` with driver, firmware and slot")
      .OneOf({"table", "wide", "json"})
      .ShowDefault();
}

Command CommandTree::Add(Command parent, const std::string& name, const std::string& description) {
  const Command command = parent.Add(name, description);
  command.SetFooter(
      "Also here: --run_dir DIR, --socket PATH, --server HOST:PORT, --certs DIR, -o table|wide|json (`r2ccctl --help` explains).");
  return command;
}

Command CommandTree::AddGroup(Command parent, const std::string& name, const std::string& description) {
  const Command command = Add(parent, name, description);
  command.NeedCommand();
  return command;
}

absl::StatusOr<Chosen> CommandTree::Choose() const {
  for (const auto& [command, make] : makers_)
    if (command.parsed()) return make();
  return absl::InternalError("a command without a meaning");
}

void AddAllCommands(CommandTree* tree) {
  AddStatusCommands(tree);
  AddNicCommands(tree);
  AddNodeCommands(tree);
  AddCertsCommands(tree);
  AddConfigCommands(tree);
  AddDoctorCommand(tree);
  AddReadyCommand(tree);
  AddHealthEventsCommand(tree);
  AddConditionsCommand(tree);
  AddBundleCommand(tree);
  AddEventsCommand(tree);
  AddDisagreementCommand(tree);
  AddJobCommands(tree);
  AddPlanCommands(tree);
  AddPathCommands(tree);
  AddWatchCommand(tree);
  AddCompletionCommand(tree);
}

}  // namespace r2cc::client
