#include "client/commands/config_commands.h"

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "client/core/client.h"

namespace r2cc::client {
namespace {

// As the package installs it.
constexpr char kConfigFile[] = "/etc/r2cc/r2ccd.textproto";

}  // namespace

void AddConfigCommands(CommandTree* tree) {
  const Command config = tree->AddGroup(tree->root(), "config", "r2ccd's configuration: check files, show what is in force, read it again");
  const auto command = std::make_shared<CheckConfigCommand>();
  const Command check = tree->Add(config, "check", "each mistake in the files, found by this machine's r2ccd program; asks no daemon");
  check.AddOption("FILE|DIR", &command->path, "the configuration, or the directory of r2ccd.textproto").Default(kConfigFile);
  check.AddOption("--node", &command->node, "as r2ccd's --node").Value("NODE");
  check
      .AddOption("--r2ccd", &command->program,
                 "the program that checks (default: the one in r2ccctl's directory, /usr/sbin/r2ccd, the one in PATH)")
      .Value("PROGRAM");
  tree->Means(check, [command] { return Chosen(*command); });
  tree->Means(tree->Add(config, "suggest", "writes `nics` from the networks of this machine's interfaces, and what other nodes call them"),
              [tree]() -> absl::StatusOr<Chosen> {
                const GlobalFlags& global = tree->global();
                if (!global.server.empty())
                  return absl::InvalidArgumentError("suggest looks at this machine: run it on the node, without --server");
                return Chosen(SuggestCommand{global.socket.empty() ? SocketPath(global.run_dir) : global.socket});
              });
  tree->Means(tree->Add(config, "show", "all that is in force, defaults too; private keys appear as file names only"),
              [] { return Chosen(Request(v1::ConfigRequest())); });
  tree->Means(
      tree->Add(config, "reload", "have r2ccd read its files again: peers, grants, drills, log level and rates are in force at once"),
      [] { return Chosen(Request(v1::ReloadRequest())); });
}

}  // namespace r2cc::client
