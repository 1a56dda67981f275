#include "client/arguments.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <utility>

#include "absl/status/statusor.h"
#include "base/command_line/command_help.h"
#include "client/client.h"
#include "client/commands/command_tree.h"
#include "client/usage.h"

namespace r2cc::client {

Completions CompleteArguments(const CompletionQuery& query) {
  CommandTree tree(absl::UnixEpoch(), absl::UTCTimeZone());  // nothing that is typed is read
  AddAllCommands(&tree);
  return Complete(Describe(*tree.root()), query.words);
}

Parsed ParseArguments(std::vector<std::string> arguments, absl::Time now, absl::TimeZone zone) {
  CommandTree tree(now, zone);
  AddAllCommands(&tree);
  CLI::App& root = *tree.root();
  // Before anything is parsed: what stands behind it is half a command line.
  if (arguments.size() > 2 && arguments[0] == "completion" && arguments[1] == "words")
    return CompletionQuery{{arguments.begin() + 2, arguments.end()}};
  std::reverse(arguments.begin(), arguments.end());  // the order CLI11 wants
  try {
    root.parse(arguments);
  } catch (const CLI::CallForHelp&) {
    return Help{root.help()};
  } catch (const CLI::CallForVersion& version) {
    return Help{std::string(version.what()) + "\n"};
  } catch (const CLI::ParseError& error) {
    return UsageError{ExplainUsage(root, error)};
  }
  absl::StatusOr<Chosen> chosen = tree.Choose();
  if (!chosen.ok()) return UsageError{std::string(chosen.status().message())};
  const GlobalFlags& global = tree.global();
  if (auto* completion = std::get_if<CompletionCommand>(&*chosen)) return *completion;
  if (auto* certs = std::get_if<CertsCommand>(&*chosen)) return *certs;
  if (auto* check = std::get_if<CheckConfigCommand>(&*chosen)) return *check;
  if (auto* bundle = std::get_if<BundleCommand>(&*chosen)) return *bundle;
  if (auto* env = std::get_if<JobEnvCommand>(&*chosen)) return *env;
  if (auto* doctor = std::get_if<DoctorCommand>(&*chosen)) return *doctor;
  if (auto* simulate = std::get_if<SimulateCommand>(&*chosen)) return Simulation{std::move(*simulate), global.format()};
  return Invocation{std::get<Request>(*std::move(chosen)), global.socket.empty() ? SocketPath(global.run_dir) : global.socket,
                    global.server, global.certs, global.format()};
}

}  // namespace r2cc::client
