// Parses r2ccctl's command line into a request. A new command: one more sub-command in commands/, its request in
// commands/request.h, its reply's text in format.h and one more overload in run.cc.
#ifndef R2CC_CLIENT_ARGUMENTS_H_
#define R2CC_CLIENT_ARGUMENTS_H_

#include <string>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "client/commands/request.h"
#include "client/local/certs.h"
#include "client/local/check_config.h"
#include "client/local/completion.h"
#include "client/local/ready.h"
#include "client/plan/simulate.h"

namespace r2cc::client {

struct Invocation {
  Request request;
  std::string socket_path;
  std::string server;        // host:port of a daemon elsewhere; empty: the socket
  std::string certificates;  // with `server`: the directory
  Output output = Output::kTable;
};

// `plan simulate`, which asks no daemon.
struct Simulation {
  SimulateCommand command;
  Output output = Output::kTable;
};

// The person asked for help, or for the version: print it, exit 0.
struct Help {
  std::string text;
};

// One line that names what is wrong and the way out: exit 2.
struct UsageError {
  std::string message;
};

using Parsed =
    std::variant<Invocation, Simulation, CertsCommand, CheckConfigCommand, DoctorCommand, SuggestCommand, ReadyCommand, HealthEventsCommand,
                 ConditionsCommand, BundleCommand, JobEnvCommand, CompletionCommand, CompletionQuery, Help, UsageError>;

// The possible next words of a command line; for names that only a daemon knows it returns which kind is needed.
Completions CompleteArguments(const CompletionQuery& query);

// `arguments` without the program's name. `now` and `zone`: for times that a person types.
Parsed ParseArguments(std::vector<std::string> arguments, absl::Time now, absl::TimeZone zone);

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_ARGUMENTS_H_
