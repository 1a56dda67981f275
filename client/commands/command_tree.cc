#include "client/commands/command_tree.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/command_line/command_help.h"
#include "base/core/release.h"
#include "client/client.h"
#include "client/commands/certs_commands.h"
#include "client/commands/completion_commands.h"
#include "client/commands/config_commands.h"
#include "client/commands/doctor_commands.h"
#include "client/commands/job_commands.h"
#include "client/commands/nic_commands.h"
#include "client/commands/node_commands.h"
#include "client/commands/plan_commands.h"

namespace r2cc::client {
namespace {

constexpr char kCertificates[] = "/etc/r2cc/tls";

}  // namespace

CommandTree::CommandTree(absl::Time now, absl::TimeZone zone)
    : now_(now),
      zone_(zone),
      global_{kRunDir, "", "", kCertificates, "table"},
      root_("Asks and steers r2ccd, the daemon that keeps this node's NICs in view.\nExit codes: 0 done, 1 refused or failed, 2 usage.",
            "r2ccctl") {
  // The control socket's protocol has its version in its package's name.
  root_.set_version_flag("--version", absl::StrCat("r2ccctl ", ReleaseAndRevision(), "\nprotocols: control ",
                                                   v1::StatusRequest::descriptor()->file()->package()));
  AddHelpJson(&root_);
  root_.require_subcommand(1);
  root_.fallthrough();
  root_.add_option("--run_dir", global_.run_dir, "folder of r2ccd's sockets")->capture_default_str();
  root_.add_option("--socket", global_.socket, "r2ccd's control socket (default: RUN_DIR/r2ccd.sock)");
  root_.add_option("--server", global_.server, "ask the daemon at HOST:PORT instead, with a certificate")->option_text("HOST:PORT");
  root_.add_option("--certs", global_.certs, "with --server: directory of operator.crt (or node.crt), its key and ca.crt")
      ->capture_default_str();
  root_.add_option("-o,--output", global_.output, "table for people, json for programs")
      ->check(CLI::IsMember({"table", "json"}))
      ->capture_default_str();
}

CLI::App* CommandTree::Add(CLI::App* parent, const std::string& name, const std::string& description) {
  CLI::App* app = parent->add_subcommand(name, description);
  app->fallthrough();
  app->footer("Also here: --run_dir DIR, --socket PATH, --server HOST:PORT, --certs DIR, -o table|json (`r2ccctl --help` explains).");
  return app;
}

CLI::App* CommandTree::AddGroup(CLI::App* parent, const std::string& name, const std::string& description) {
  CLI::App* app = Add(parent, name, description);
  app->require_subcommand(1);
  return app;
}

absl::StatusOr<Chosen> CommandTree::Choose() const {
  for (const auto& [app, make] : makers_)
    if (app->parsed()) return make();
  return absl::InternalError("a command without a meaning");
}

void AddAllCommands(CommandTree* tree) {
  AddStatusCommands(tree);
  AddNicCommands(tree);
  AddNodeCommands(tree);
  AddCertsCommands(tree);
  AddConfigCommands(tree);
  AddDoctorCommand(tree);
  AddBundleCommand(tree);
  AddEventsCommand(tree);
  AddJobCommands(tree);
  AddPlanCommands(tree);
  AddPathCommands(tree);
  AddWatchCommand(tree);
  AddCompletionCommand(tree);
}

}  // namespace r2cc::client
