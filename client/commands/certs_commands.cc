#include "client/commands/certs_commands.h"

#include <memory>

#include "client/certs.h"

namespace r2cc::client {
namespace {

// A node's certificate is replaced while it serves, by whatever renews it; an authority is to outlive its machines.
constexpr int kNodeDays = 397;
constexpr int kAuthorityDays = 3650;
constexpr int kDaysMax = 36500;

}  // namespace

void AddCertsCommands(CommandTree* tree) {
  const auto certs = std::make_shared<CertsCommand>();
  CLI::App* group = tree->AddGroup(tree->root(), "certs", "make a cluster's authority and certificates of it; asks no daemon");
  CLI::App* init = tree->Add(group, "init", "a new authority: ca.crt, and ca.key, which stays with you");
  CLI::App* issue = tree->Add(group, "issue", "a node's directory: node.crt, node.key, ca.crt");
  for (CLI::App* app : {init, issue}) {
    app->add_option("--dir", certs->directory, "directory of the authority")->default_val("r2cc-ca");
    app->add_option("--days", certs->days, "how long it is valid (default: an authority 3650, others 397)")->check(CLI::Range(1, kDaysMax));
  }
  init->add_option("--name", certs->name, "what the authority calls itself");
  issue->add_option("NAME", certs->name, "the node, as its daemon calls itself; or the operator")->required();
  issue->add_flag("--operator", certs->is_operator, "for a person: operator.crt and operator.key, for --certs");
  issue->add_option("--out", certs->out_directory, "directory to write (default: NAME below --dir)")->option_text("DIR");
  tree->Means(init, [certs] {
    certs->init = true;
    if (certs->name.empty()) certs->name = "R2CC";
    if (certs->days == 0) certs->days = kAuthorityDays;
    return Chosen(*certs);
  });
  tree->Means(issue, [certs] {
    if (certs->days == 0) certs->days = kNodeDays;
    return Chosen(*certs);
  });
}

}  // namespace r2cc::client
