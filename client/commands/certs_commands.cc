#include "client/commands/certs_commands.h"

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/local/certs.h"

namespace r2cc::client {
namespace {

// A node's certificate is replaced while it serves, by any tool; an authority is to outlive its machines.
constexpr int kNodeDays = 397;
constexpr int kAuthorityDays = 3650;
constexpr int kDaysMax = 36500;
// The place in the packages' configuration, and the users that read them there.
constexpr char kInstalled[] = "/etc/r2cc/tls";
constexpr char kServiceUser[] = "r2ccd";

}  // namespace

void AddCertsCommands(CommandTree* tree) {
  const auto certs = std::make_shared<CertsCommand>();
  const Command group = tree->AddGroup(tree->root(), "certs", "make a cluster's authority and certificates of it; asks no daemon");
  const Command init = tree->Add(group, "init", "a new authority in --dir: ca.crt, and ca.key, which signs for every node: keep it safe");
  const Command issue = tree->Add(group, "issue", "a node's directory: node.crt, node.key, ca.crt");
  for (const Command app : {init, issue}) {
    app.AddOption("--dir", &certs->directory, "directory of the authority").Default("r2cc-ca");
    app.AddOption("--days", &certs->days, "how long it is valid (default: an authority 3650, others 397)").Range(1, kDaysMax);
  }
  init.AddOption("--name", &certs->name, "name of the authority");
  issue.AddOption("NAME", &certs->name, "name of the node, as `hostname` prints it or `node` sets it; or name of the operator").Required();
  issue.AddFlag("--operator", &certs->is_operator, "for a person: operator.crt and operator.key, for --certs");
  issue.AddOption("--out", &certs->out_directory, "directory to write (default: NAME below --dir)").Value("DIR");
  issue.AddOption("--owner", &certs->owner, "user that owns the key; no other user can read it (default: the caller)").Value("USER");
  const auto install = std::make_shared<bool>(false);
  issue.AddFlag("--install", install.get(), "for this node: as --out /etc/r2cc/tls --owner r2ccd; r2ccd uses it within seconds");
  tree->Means(init, [certs] {
    certs->init = true;
    if (certs->name.empty()) certs->name = "R2CC";
    if (certs->days == 0) certs->days = kAuthorityDays;
    return Chosen(*certs);
  });
  tree->Means(issue, [certs, install]() -> absl::StatusOr<Chosen> {
    if (*install && certs->is_operator)
      return absl::InvalidArgumentError("--install is for this node's daemon; an operator's files belong to the person: --out DIR");
    if (*install && certs->out_directory.empty()) certs->out_directory = kInstalled;
    if (*install && certs->owner.empty()) certs->owner = kServiceUser;
    if (certs->days == 0) certs->days = kNodeDays;
    return Chosen(*certs);
  });
}

}  // namespace r2cc::client
