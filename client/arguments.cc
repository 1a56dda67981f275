#include "client/arguments.h"

#include <utility>

#include "absl/status/statusor.h"
#include "client/commands/command_tree.h"
#include "client/core/client.h"

namespace r2cc::client {

Completions CompleteArguments(const CompletionQuery& query) {
  CommandTree tree(absl::UnixEpoch(), absl::UTCTimeZone());  // nothing that is typed is read
  AddAllCommands(&tree);
  return Complete(tree.root().Describe(), query.words);
}

Parsed ParseArguments(std::vector<std::string> arguments, absl::Time now, absl::TimeZone zone) {
  CommandTree tree(now, zone);
  AddAllCommands(&tree);
  // Before anything is parsed: half a command line follows it.
  if (arguments.size() > 2 && arguments[0] == "completion" && arguments[1] == "words")
    return CompletionQuery{{arguments.begin() + 2, arguments.end()}};
  // As words, which people try.
  if (arguments.size() == 1 && (arguments[0] == "help" || arguments[0] == "version")) arguments[0].insert(0, "--");
  const auto outcome = tree.program().Parse(std::move(arguments));
  if (const auto* const help = std::get_if<Program::Help>(&outcome)) return Help{help->text};
  if (const auto* const wrong = std::get_if<Program::Wrong>(&outcome)) return UsageError{wrong->message};
  absl::StatusOr<Chosen> chosen = tree.Choose();
  if (!chosen.ok()) return UsageError{std::string(chosen.status().message())};
  const GlobalFlags& global = tree.global();
  if (auto* completion = std::get_if<CompletionCommand>(&*chosen)) return *completion;
  const auto with_format = [&](auto command) -> Parsed {
    command.json = global.format() == Output::kJson;
    return command;
  };
  if (auto* certs = std::get_if<CertsCommand>(&*chosen)) return with_format(*certs);
  if (auto* check = std::get_if<CheckConfigCommand>(&*chosen)) return with_format(*check);
  if (auto* bundle = std::get_if<BundleCommand>(&*chosen)) return with_format(*bundle);
  if (auto* env = std::get_if<JobEnvCommand>(&*chosen)) return with_format(*env);
  if (auto* doctor = std::get_if<DoctorCommand>(&*chosen)) return *doctor;
  if (auto* ready = std::get_if<ReadyCommand>(&*chosen)) return *ready;
  if (auto* health = std::get_if<HealthEventsCommand>(&*chosen)) return *health;
  if (auto* conditions = std::get_if<ConditionsCommand>(&*chosen)) return *conditions;
  if (auto* suggest = std::get_if<SuggestCommand>(&*chosen)) return *suggest;
  if (auto* simulate = std::get_if<SimulateCommand>(&*chosen)) return Simulation{std::move(*simulate), global.format()};
  return Invocation{std::get<Request>(*std::move(chosen)), global.socket.empty() ? SocketPath(global.run_dir) : global.socket,
                    global.server, global.certs, global.format()};
}

}  // namespace r2cc::client
