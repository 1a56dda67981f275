// Lists the requests that a command line of r2ccctl can make.
#ifndef R2CC_CLIENT_COMMANDS_REQUEST_H_
#define R2CC_CLIENT_COMMANDS_REQUEST_H_

#include <cstdint>
#include <string>
#include <variant>

#include "client/bundle/bundle_command.h"
#include "client/conditions/conditions_command.h"
#include "client/doctor/doctor_command.h"
#include "client/doctor/suggest.h"
#include "client/health/health_events_command.h"
#include "client/jobs/job_env.h"
#include "client/jobs/job_seats.h"
#include "client/local/certs.h"
#include "client/local/check_config.h"
#include "client/local/completion.h"
#include "client/local/ready.h"
#include "client/plan/simulate.h"
#include "proto/r2cc.pb.h"

namespace r2cc::client {

enum class Output { kTable, kJson };

// `watch`, which is many requests.
struct WatchCommand {
  int interval_ms = 1000;
  int count = 0;  // 0: until interrupted
};

// `health`: whether the daemon answers, soon.
struct HealthCommand {
  int within_ms = 800;  // an answer is to be there within a second, the process of the probe included
};

// An action on every NIC that fits: `request.node` and `request.nic` are patterns (base/core/glob.h). RAIL/* is that rail of all nodes.
struct ActCommand {
  v1::NicActionRequest request;
  bool wait = false;  // until nothing travels over them any more
};

// `job report`, about jobs that run and jobs that ended. 0: not given.
struct JobReportCommand {
  std::string job_glob;
  int64_t restart_ns = 0;
  int64_t checkpoint_ns = 0;
};

// `nic list -o wide`: which part each NIC is, asked of its own node.
struct WideNicsCommand {
  v1::ListNicsRequest list;
};

// `events --run`: a program for each event, one after the other.
struct HookCommand {
  v1::EventsRequest request;
  std::string program;
};

// `report`: what was saved, since some time, on all nodes or on this one. Costs as above.
struct SavedCommand {
  int64_t since_ns = 0;
  bool only_here = false;
  int64_t restart_ns = 0;
  int64_t checkpoint_ns = 0;
};

// Asked of a daemon.
using Request = std::variant<v1::StatusRequest, v1::ListNicsRequest, v1::NicActionRequest, v1::EventsRequest, v1::ListJobsRequest,
                             v1::GetPlanRequest, v1::ExplainNicRequest, v1::ProbePathsRequest, v1::ExplainPlanRequest,
                             v1::ForgetNodeRequest, v1::ConfigRequest, v1::ReloadRequest, v1::DisagreementRequest, HealthCommand,
                             WatchCommand, ActCommand, JobReportCommand, SavedCommand, WideNicsCommand, HookCommand, JobSeatsCommand>;

// Those behind Request ask no daemon, or in a way of their own.
using Chosen = std::variant<Request, SimulateCommand, CertsCommand, CheckConfigCommand, DoctorCommand, SuggestCommand, ReadyCommand,
                            HealthEventsCommand, ConditionsCommand, BundleCommand, JobEnvCommand, CompletionCommand>;

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_COMMANDS_REQUEST_H_
