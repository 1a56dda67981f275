// r2ccctl: asks and steers r2ccd. Exit codes: 0 done, 1 refused or failed, 2 usage.
#include <poll.h>
#include <pwd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/arguments.h"
#include "client/bundle/bundle.h"
#include "client/conditions/conditions.h"
#include "client/core/client.h"
#include "client/core/run_program.h"
#include "client/core/table.h"
#include "client/doctor/doctor.h"
#include "client/doctor/os_machine.h"
#include "client/doctor/suggest.h"
#include "client/health/health_events.h"
#include "client/jobs/job_env.h"
#include "client/local/certs.h"
#include "client/local/check_config.h"
#include "client/local/completion.h"
#include "client/local/ready.h"
#include "client/run.h"
#include "google/protobuf/message.h"
#include "proto/json.h"
#include "proto/local.pb.h"

namespace {

constexpr int kExitFailed = 1;
// It is done, and would be lost by a restart of the daemon.
constexpr int kExitNotKept = 3;
constexpr int kExitUsage = 2;

bool WantsColour() {
  const char* no_colour = std::getenv("NO_COLOR");  // no-color.org
  const char* term = std::getenv("TERM");
  return isatty(STDOUT_FILENO) && (no_colour == nullptr || *no_colour == '\0') && (term == nullptr || absl::string_view(term) != "dumb");
}

// Columns and rows of the terminal; 0: standard output is none, or its size is unknown.
std::pair<size_t, size_t> TerminalSize() {
  winsize size{};
  if (isatty(STDOUT_FILENO) != 1 || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return {};
  return {size.ws_col, size.ws_row};
}

std::string UserName(uint32_t uid) {
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> buffer(16384);
  return getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr ? found->pw_name : "";
}

std::map<std::string, std::string> Environment() {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(absl::string_view(*entry), absl::MaxSplits('=', 1));
    variables.insert(parts);
  }
  return variables;
}

int Fail(absl::string_view message, int exit_code) {
  for (const absl::string_view line : absl::StrSplit(message, '\n', absl::SkipEmpty()))
    std::cerr << "r2ccctl: " << r2cc::client::Printable(line) << std::endl;
  return exit_code;
}

int WriteJson(const google::protobuf::Message& message) {
  const absl::StatusOr<std::string> text = r2cc::ToJsonDocument(message);
  if (!text.ok()) return Fail(text.status().message(), kExitFailed);
  std::cout << *text << std::flush;
  return std::cout ? 0 : kExitFailed;
}

// The output of `run` for a person, with `json` as a document.
int WriteLocal(bool json, const std::function<absl::Status(std::ostream& out)>& run) {
  std::ostringstream text;
  if (const absl::Status status = run(json ? text : std::cout); !status.ok()) return Fail(status.message(), kExitFailed);
  if (!json) return 0;
  r2cc::v1::LocalReply reply;
  for (const absl::string_view line : absl::StrSplit(text.str(), '\n', absl::SkipEmpty())) reply.add_lines(std::string(line));
  return WriteJson(reply);
}

// In a shell nothing but words is of use: a daemon that cannot be asked knows none.
int AnswerShell(const r2cc::client::CompletionQuery& query) {
  r2cc::client::Completions completions = r2cc::client::CompleteArguments(query);
  if (completions.also == r2cc::client::Asked::kNodes || completions.also == r2cc::client::Asked::kNics) {
    const auto client = r2cc::client::Client::Connect(
        !completions.socket.empty() ? completions.socket
                                    : r2cc::client::SocketPath(completions.run_dir.empty() ? r2cc::client::kRunDir : completions.run_dir));
    if (client.ok())
      if (const auto reply = (*client)->ListNicsSoon(); reply.ok())
        for (r2cc::client::CompletionCandidate& name : NamesOf(*reply, completions)) completions.words.push_back(std::move(name));
  }
  Write(completions, std::cout);
  return std::cout ? 0 : kExitFailed;
}

}  // namespace

int main(int argc, char** argv) {
  // Its complaints would be next to our one line; a user who looks for them can still set it.
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  const r2cc::client::Parsed parsed =
      r2cc::client::ParseArguments(std::vector<std::string>(argv + 1, argv + argc), absl::Now(), absl::LocalTimeZone());
  if (const auto* help = std::get_if<r2cc::client::Help>(&parsed)) {
    std::cout << help->text << std::flush;
    return std::cout ? 0 : kExitFailed;
  }
  if (const auto* error = std::get_if<r2cc::client::UsageError>(&parsed)) return Fail(error->message, kExitUsage);
  if (const auto* query = std::get_if<r2cc::client::CompletionQuery>(&parsed)) return AnswerShell(*query);
  if (const auto* completion = std::get_if<r2cc::client::CompletionCommand>(&parsed)) {
    std::cout << r2cc::client::CompletionScript(completion->shell) << std::flush;
    return std::cout ? 0 : kExitFailed;
  }
  r2cc::client::Style style{absl::GetCurrentTimeNanos(), absl::LocalTimeZone(), WantsColour(), TerminalSize().first};
  if (const auto* simulation = std::get_if<r2cc::client::Simulation>(&parsed)) {
    const absl::Status status = r2cc::client::Run(*simulation, style, std::cout);
    return status.ok() ? 0 : Fail(status.message(), kExitFailed);
  }
  if (const auto* certs = std::get_if<r2cc::client::CertsCommand>(&parsed)) {
    return WriteLocal(certs->json, [&](std::ostream& out) { return r2cc::client::Run(*certs, absl::ToUnixSeconds(absl::Now()), out); });
  }
  if (const auto* check = std::get_if<r2cc::client::CheckConfigCommand>(&parsed)) {
    // It does not come back from there, but for this.
    return Fail(r2cc::client::Run(*check).message(), kExitFailed);
  }
  if (const auto* ready = std::get_if<r2cc::client::ReadyCommand>(&parsed)) return r2cc::client::Run(*ready, std::cout);
  const r2cc::client::Terminal terminal{[] { return absl::GetCurrentTimeNanos(); },
                                        [](int milliseconds) { return poll(nullptr, 0, milliseconds) == 0; }, isatty(STDOUT_FILENO) == 1,
                                        TerminalSize};
  if (const auto* health = std::get_if<r2cc::client::HealthEventsCommand>(&parsed))
    return r2cc::client::Run(*health, terminal.now_ns, terminal.wait);
  if (const auto* conditions = std::get_if<r2cc::client::ConditionsCommand>(&parsed))
    return r2cc::client::Run(*conditions, terminal.now_ns, terminal.wait);
  if (const auto* doctor = std::get_if<r2cc::client::DoctorCommand>(&parsed)) {
    r2cc::client::OsMachine machine(Environment(), terminal.now_ns);
    const absl::Status status = r2cc::client::Run(*doctor, machine, style, std::cout, terminal.wait);
    return status.ok() ? 0 : Fail(status.message(), kExitFailed);
  }
  if (const auto* suggest = std::get_if<r2cc::client::SuggestCommand>(&parsed)) {
    r2cc::client::OsMachine machine(Environment(), terminal.now_ns);
    std::cout << r2cc::client::Run(*suggest, machine) << std::flush;
    return std::cout ? 0 : kExitFailed;
  }
  if (const auto* bundle = std::get_if<r2cc::client::BundleCommand>(&parsed)) {
    r2cc::client::OsMachine machine(Environment(), terminal.now_ns);
    const auto run_program = [](const std::vector<std::string>& command, size_t bytes_max) {
      return r2cc::client::RunSystemProgram(command, bytes_max);
    };
    const r2cc::client::Style plain{style.now_ns, style.zone, /*colour=*/false};
    return WriteLocal(bundle->json, [&](std::ostream& out) { return r2cc::client::Run(*bundle, machine, run_program, plain, out); });
  }
  if (const auto* env = std::get_if<r2cc::client::JobEnvCommand>(&parsed)) {
    if (env->json) return WriteJson(r2cc::client::MakeJobEnvironment(*env));
    std::cout << r2cc::client::FormatJobEnv(*env) << std::flush;
    return std::cout ? 0 : kExitFailed;
  }
  const auto& invocation = std::get<r2cc::client::Invocation>(parsed);
  // Users of another machine are not this one's.
  if (invocation.server.empty()) style.user_name = UserName;
  absl::StatusOr<std::unique_ptr<r2cc::client::Client>> client =
      invocation.server.empty() ? r2cc::client::Client::Connect(invocation.socket_path)
                                : r2cc::client::Client::ConnectServer(invocation.server, invocation.certificates);
  if (!client.ok()) return Fail(client.status().message(), kExitFailed);
  const absl::Status status = r2cc::client::Run(invocation, style, **client, std::cout, terminal);
  return status.ok() ? 0 : Fail(status.message(), absl::IsDataLoss(status) ? kExitNotKept : kExitFailed);
}
