// Builds the tree of r2ccctl's commands: each with its arguments, and the request that it makes once the command line is parsed.
#ifndef R2CC_CLIENT_COMMANDS_COMMAND_TREE_H_
#define R2CC_CLIENT_COMMANDS_COMMAND_TREE_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/commands/command.h"
#include "client/commands/request.h"

namespace r2cc::client {

// The flags of every command.
struct GlobalFlags {
  std::string run_dir;
  std::string socket;
  std::string server;
  std::string certs;
  std::string output;

  bool wide() const { return output == "wide"; }
  Output format() const { return output == "json" ? Output::kJson : Output::kTable; }
};

class CommandTree {
 public:
  // `now` and `zone`: for times that a person types.
  CommandTree(absl::Time now, absl::TimeZone zone);
  CommandTree(const CommandTree&) = delete;
  CommandTree& operator=(const CommandTree&) = delete;

  Command root() const { return program_.root(); }
  const Program& program() const { return program_; }
  const GlobalFlags& global() const { return global_; }
  // As -o json.
  void SetJson() { global_.output = "json"; }
  absl::Time now() const { return now_; }
  absl::TimeZone zone() const { return zone_; }

  // A (sub-)command: global flags may come after it, and we write its error messages.
  Command Add(Command parent, const std::string& name, const std::string& description);
  // One that is nothing without a command behind it.
  Command AddGroup(Command parent, const std::string& name, const std::string& description);
  // `make` returns the request of `command`, once it was parsed. It owns the variables of the command's flags.
  void Means(Command command, std::function<absl::StatusOr<Chosen>()> make) { makers_.emplace_back(command, std::move(make)); }

  // After program().Parse(). INVALID_ARGUMENT with one line for a person who typed what the command does not take.
  absl::StatusOr<Chosen> Choose() const;

 private:
  const absl::Time now_;
  const absl::TimeZone zone_;
  GlobalFlags global_;
  Program program_;
  std::vector<std::pair<Command, std::function<absl::StatusOr<Chosen>()>>> makers_;
};

// All commands, in the order of --help.
void AddAllCommands(CommandTree* tree);

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_COMMANDS_COMMAND_TREE_H_
