// From r2ccctl's command line to the request it stands for. A new command: one more sub-command here, its request in Request, its
// reply's text in format.h and one more overload in run.cc.
#ifndef R2CC_CLIENT_ARGUMENTS_H_
#define R2CC_CLIENT_ARGUMENTS_H_

#include <string>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "client/certs.h"
#include "client/simulate.h"
#include "proto/r2cc.pb.h"

namespace r2cc::client {

enum class Output { kTable, kJson };

// `watch`, which is many requests.
struct WatchCommand {
  int interval_ms = 1000;
  int count = 0;  // 0: until interrupted
};

// `health`: whether the daemon answers, soon.
struct HealthCommand {};

// An action on every NIC that fits: `request.node` and `request.nic` are patterns (base/glob.h). RAIL/* is that rail of all nodes.
struct ActCommand {
  v1::NicActionRequest request;
  bool wait = false;  // until nothing travels over them any more
};

using Request = std::variant<v1::StatusRequest, v1::ListNicsRequest, v1::NicActionRequest, v1::EventsRequest, v1::ListJobsRequest,
                             v1::GetPlanRequest, v1::ExplainNicRequest, v1::ProbePathsRequest, v1::ExplainPlanRequest,
                             v1::ForgetNodeRequest, HealthCommand, WatchCommand, ActCommand>;

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

// The person asked for help: print it, exit 0.
struct Help {
  std::string text;
};

// One line that names what is wrong and the way out: exit 2.
struct UsageError {
  std::string message;
};

using Parsed = std::variant<Invocation, Simulation, CertsCommand, Help, UsageError>;

// `arguments` without the program's name. `now` and `zone`: for times that a person types.
Parsed ParseArguments(std::vector<std::string> arguments, absl::Time now, absl::TimeZone zone);

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_ARGUMENTS_H_
