// r2ccd, the daemon of one node.
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/command_line/command_help.h"
#include "base/core/release.h"
#include "base/event_loop.h"
#include "base/journal_socket.h"
#include "base/log.h"
#include "base/run_dirs.h"
#include "base/status_macros.h"
#include "daemon/config/config.h"
#include "daemon/core/convert.h"
#include "daemon/http/http_server.h"
#include "daemon/io/listen_address.h"
#include "daemon/io/lock_file.h"
#include "daemon/io/run_dir.h"
#include "daemon/io/run_dir_keeper.h"
#include "daemon/real_world.h"
#include "daemon/reload/checked_config.h"
#include "daemon/reload/file_config_loader.h"
#include "daemon/rpc/channel.h"
#include "daemon/rpc/servers.h"
#include "daemon/service/handed_descriptors.h"
#include "daemon/service/loop_guard.h"
#include "daemon/service/notify_socket.h"
#include "daemon/service/service_notifier.h"
#include "daemon/service/signals.h"
#include "daemon/state/saved_state.h"
#include "daemon/trust/accounts.h"
#include "daemon/trust/service_user.h"
#include "daemon/wiring.h"
#include "health/probe/rail_wire.h"
#include "plan/page/attach.h"
#include "plan/page/page.h"
#include "plan/page/ring.h"

namespace r2cc::daemon {
namespace {

constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;

std::string Version() {
  return VersionText("r2ccd", {{"peers", kPeerProtocolLeast, kPeerProtocol},
                               {"probe", health::kRailProbeVersion, health::kRailProbeVersion},
                               {"attach", plan::kAttachVersionLeast, plan::kAttachVersion},
                               {"page", plan::kPageVersionLeast, plan::kPageVersion},
                               {"ring", plan::kRingVersion, plan::kRingVersion},
                               {"state", kStateVersion, kStateVersion}});
}

std::string HostName() {
  char name[HOST_NAME_MAX + 1] = {};
  gethostname(name, sizeof(name) - 1);
  return name;
}

// Null: there is none, which is reported; the daemon serves all the same, and forgets with its end. Two daemons may not share one.
absl::StatusOr<std::unique_ptr<LockFile>> TakeStateDir(const Config& config) {
  absl::Status status;
  if (mkdir(config.state_dir.c_str(), 0750) != 0 && errno != EEXIST)
    status = absl::ErrnoToStatus(errno, absl::StrCat("cannot make ", config.state_dir));
  if (status.ok()) {
    auto lock = LockFile::Take(config.state_lock_file(), config.state_dir, "--state_dir");
    if (lock.ok() || absl::IsAlreadyExists(lock.status())) return lock;
    status = lock.status();
  }
  LogWarning("nothing is kept over a restart: name a directory that r2ccd may write (--state_dir)",
             {{"reason", std::string(status.message())}});
  return nullptr;
}

// The address at which peers may reach us, for people and messages: a wildcard means nothing to another machine.
std::string PeerAddress(const std::string& listen, int port) {
  const auto address = ParseHostPort(listen, /*allow_port_zero=*/true);
  const std::string host = !address.ok() || address->host == "0.0.0.0" || address->host == "::" ? HostName() : address->host;
  return absl::StrCat(host.find(':') == std::string::npos ? host : absl::StrCat("[", host, "]"), ":", port);
}

// Empty: other nodes can reach what it listens on, as far as can be seen from here.
std::string ListenAlarm(const std::string& listen) {
  const auto address = ParseHostPort(listen, /*allow_port_zero=*/true);
  return address.ok() ? LoopbackAlarm(address->host, FirstAddressOf(address->host)) : "";
}

// The files that r2ccd has open when it begins to serve, measured at 90 with two NICs and two peers, with room for more of them.
constexpr int kDescriptorsMin = 256;

// Every attached job takes two descriptors. Fails if there are too few to begin with: loops, gRPC's too, cannot do without.
absl::Status RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  std::vector<int> opened;
  while (opened.size() < kDescriptorsMin) {
    const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (fd < 0) break;
    opened.push_back(fd);
  }
  for (const int fd : opened) close(fd);
  if (opened.size() == kDescriptorsMin) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("r2ccd needs ", kDescriptorsMin, " descriptors at its start and can open ",
                                                   opened.size(), ": raise its limit (LimitNOFILE of the unit, ulimit -n)"));
}

// Before any thread is made: all of them inherit it. Every hop of a verdict to another node waits for a processor, and jobs leave none
// idle. False: it cannot be had.
bool SetNice(const Config& config) { return getpriority(PRIO_PROCESS, 0) == config.nice || setpriority(PRIO_PROCESS, 0, config.nice) == 0; }

// For the calling thread alone, the core's, on which the jobs' page depends: other threads serve connections, and must not take the
// processors from the jobs.
void SetCorePriority(const Config& config, bool is_nice) {
  const sched_param realtime{.sched_priority = config.realtime_priority};
  if (config.realtime_priority > 0) {
    if (sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &realtime) == 0) return;
    LogInfo(
        "no real-time priority: give r2ccd CAP_SYS_NICE, and its control group real-time runtime where there are such; or set "
        "realtime_priority to 0 in the configuration",
        {{"realtime_priority", config.realtime_priority}, {"nice", config.nice}, {"reason", std::strerror(errno)}});
  }
  if (is_nice) return;
  LogWarning("verdicts will be late if jobs keep the processors busy: give r2ccd CAP_SYS_NICE, or set nice in the configuration",
             {{"nice", config.nice}, {"reason", std::strerror(errno)}});
}

// The manager that started this process, if it wants notifications.
struct Manager {
  std::unique_ptr<NotifySink> sink;  // null: there is none
  Nanos watchdog = 0;                // how long it waits for a sign of life; 0: it does not
  std::unique_ptr<HandedDescriptors> handed = std::make_unique<HandedDescriptors>();  // kept from the former run
};

// Takes its variables out of the environment.
Manager FindManager() {
  Manager manager;
  manager.handed = std::make_unique<HandedDescriptors>(
      HandedNames(std::getenv("LISTEN_PID"), std::getenv("LISTEN_FDS"), std::getenv("LISTEN_FDNAMES"), getpid()));
  const char* const address = std::getenv("NOTIFY_SOCKET");
  if (address == nullptr) return manager;
  if (auto socket = NotifySocket::Open(address); socket.ok())
    manager.sink = *std::move(socket);
  else
    LogWarning(std::string(socket.status().message()));
  manager.watchdog = WatchdogTime(std::getenv("WATCHDOG_USEC"), std::getenv("WATCHDOG_PID"), getpid());
  return manager;
}

// Jobs that come while this node has no r2ccd wait in the socket's queue: the manager keeps it from one run to the next.
void AdoptAttachSocket(const Manager& manager, SocketAttachServer* jobs) {
  for (const std::string& name : manager.handed->names()) jobs->Adopt(manager.handed->Take(name), name);
}

void KeepAttachSocket(const Manager& manager, const std::vector<std::string>& handed, SocketAttachServer* jobs) {
  if (manager.sink == nullptr) return;
  const std::string name = jobs->kept_name();
  // One that is not the path's any more is of no use to anybody.
  for (const std::string& other : handed)
    if (other != name) manager.sink->Notify(absl::StrCat("FDSTOREREMOVE=1\nFDNAME=", other));
  if (!name.empty() && manager.sink->Keep(name, jobs->listen_fd())) jobs->LeaveSocket();
}

// Null: it is off.
std::unique_ptr<HttpServer> ServeHttp(const Config& config, const Credentials& peers, RealWorld* world, Wiring* wiring, EventLoop* core) {
  if (config.http.listen.empty()) return nullptr;
  HostNames names = config.http.hosts;
  names.push_back(config.node);
  names.push_back(HostName());
  const auto listen = ParseHostPort(config.http.listen, /*allow_port_zero=*/true);
  const bool clear = listen.ok() && IsLoopback(listen->host);
  return std::make_unique<HttpServer>(
      HttpServer::Parts{&wiring->backend(), world->refusals(), clear ? nullptr : peers.tls, std::move(names),
                        [wiring, core](const std::string& alarm) { core->Post([wiring, alarm] { wiring->SetHttpAlarm(alarm); }); }},
      config.http.listen);
}

absl::Status Serve(const LoadedConfig& loaded, ConfigLoader* loader, Signals* signals, const Manager& manager) {
  const Config& config = loaded.config;
  RETURN_IF_ERROR(MakeRunDir(config.run_dir));
  RETURN_IF_ERROR(MakeControlDir(config.run_dir));
  ASSIGN_OR_RETURN(auto lock, LockFile::Take(config.lock_file(), config.control_socket(), "--run_dir"));
  ASSIGN_OR_RETURN(const auto state_lock, TakeStateDir(config));
  const bool is_nice = SetNice(config);
  ASSIGN_OR_RETURN(const AllCredentials credentials, LoadAllCredentials(config));
  if (config.insecure)
    LogWarning(
        "INSECURE: everybody who can reach the daemons' port may command this node and impersonate others; set tls, remove insecure: true",
        {{"listen", config.listen}});
  if (config.etcd.has_value() && !config.etcd->tls.has_value())
    LogWarning("the connections to etcd are not encrypted: set store.etcd_tls in the configuration");

  // Destroyed in the opposite order: the servers before what they ask, the world after all that uses it.
  EventLoop loop;
  ASSIGN_OR_RETURN(const auto world, RealWorld::Make(loaded, loader, credentials, &loop));
  const std::vector<std::string> handed = manager.handed->names();
  AdoptAttachSocket(manager, world->jobs());
  Wiring wiring(config, world->world());
  RETURN_IF_ERROR(wiring.Start());
  KeepAttachSocket(manager, handed, world->jobs());
  ASSIGN_OR_RETURN(const auto servers,
                   RpcServers::Start({&wiring.backend(), world->authenticator(), world->refusals(), world->store_service()},
                                     config.control_socket(), config.listen, credentials.peers));
  RETURN_IF_ERROR(LinkOldControlSocket(config.run_dir));
  wiring.SetPeerAddress(PeerAddress(config.listen, servers->peer_port()));
  if (const std::string alarm = ListenAlarm(config.listen); !alarm.empty()) {
    LogWarning(alarm);
    wiring.SetListenAlarm(alarm);
  }
  const auto http = ServeHttp(config, credentials.peers, world.get(), &wiring, &loop);
  LogInfo("r2ccd serves", {{"node", config.node},
                           {"socket", config.control_socket()},
                           {"attach", config.attach_socket()},
                           {"peers_port", servers->peer_port()}});
  std::optional<ServiceNotifier> notifier;
  if (manager.sink != nullptr) notifier.emplace(manager.sink.get(), &loop, manager.watchdog, [&wiring] { return wiring.StatusLine(); });
  RETURN_IF_ERROR(signals->Follow(&loop, [&wiring, &notifier](const Caller& caller) {
    if (notifier.has_value()) notifier->Reloading();
    wiring.Reload(caller, [&notifier] {
      if (notifier.has_value()) notifier->Ready();
    });
  }));
  const RunDirKeeper keeper(&loop, {{config.lock_file(), [&lock] { return lock->IsAtPath(); },
                                     [&lock, &config]() -> absl::Status {
                                       RETURN_IF_ERROR(MakeRunDir(config.run_dir));
                                       RETURN_IF_ERROR(MakeControlDir(config.run_dir));
                                       ASSIGN_OR_RETURN(lock, LockFile::Take(config.lock_file(), config.control_socket(), "--run_dir"));
                                       return absl::OkStatus();
                                     }},
                                    {config.attach_socket(), [jobs = world->jobs()] { return jobs->IsAtPath(); },
                                     [jobs = world->jobs(), &manager, kept = world->jobs()->kept_name()]() mutable -> absl::Status {
                                       RETURN_IF_ERROR(jobs->MakeAgain());
                                       KeepAttachSocket(manager, {std::exchange(kept, jobs->kept_name())}, jobs);
                                       return absl::OkStatus();
                                     }},
                                    {config.control_socket(), [&servers] { return servers->HasControlSocket(); },
                                     [&servers] {
                                       servers->MakeControlSocketAgain();
                                       return absl::OkStatus();
                                     }},
                                    {OldControlSocket(config.run_dir), [&config] { return IsOldControlSocketLinked(config.run_dir); },
                                     [&config] { return LinkOldControlSocket(config.run_dir); }}});
  {
    const LoopGuard guard(&loop, world->disk(), [&servers](bool turns) { servers->SetServing(turns); });
    // The first plan is on the page, and units that waited for this one are answered.
    if (notifier.has_value()) notifier->Ready();
    SetCorePriority(config, is_nice);
    loop.Run();
    if (notifier.has_value()) notifier->Stopping();
  }
  wiring.EndOnPurpose();
  wiring.Stop();
  world->FlushDisk();
  unlink(config.control_socket().c_str());
  UnlinkOldControlSocket(config.run_dir);
  LogInfo("r2ccd ends; the jobs go on");
  return absl::OkStatus();
}

// Files that root can read and the service could not.
absl::Status CheckAsService(const Config& config, const std::string& user) {
  if (geteuid() != 0) return absl::OkStatus();
  std::vector<std::string> files;
  for (const std::optional<TlsSpec>& tls : {config.tls, config.etcd.has_value() ? config.etcd->tls : std::nullopt})
    if (tls.has_value()) files.insert(files.end(), {tls->certificate_file, tls->key_file, tls->ca_file});
  const std::vector<std::string> lines = UnreadableFor(user, files);
  return lines.empty() ? absl::OkStatus() : absl::PermissionDeniedError(absl::StrJoin(lines, "\n"));
}

// With certificates that are wrong it serves its jobs all the same: so they are looked at later.
absl::Status Start(const ConfigFlags& flags, ConfigLoader* loader, Signals* signals, const Manager& manager) {
  LoadedConfig loaded;
  ASSIGN_OR_RETURN(loaded.config, ReadConfig(flags, nullptr, Absent::kAccept));
  ASSIGN_OR_RETURN(loaded.grants, ResolveGrants(loaded.config));
  SetMinSeverity(loaded.config.log_level.value_or(Severity::kInfo));
  return Serve(loaded, loader, signals, manager);
}

// Settings that are no mistake, and mostly not intended.
std::vector<std::string> ConfigWarnings(const LoadedConfig& loaded) {
  std::vector<std::string> warnings = RolesLost(loaded.config, loaded.grants);
  if (std::string alarm = ListenAlarm(loaded.config.listen); !alarm.empty()) warnings.insert(warnings.begin(), std::move(alarm));
  return warnings;
}

int Main(int argc, char** argv) {
  ConfigFlags flags;
  std::string log_level, log_format = "text";
  int64_t wall_clock_offset_s = 0;
  bool check_config = false;
  std::string service_user = kServiceUser;
  CLI::App app(
      "r2ccd: watches this node's NICs, exchanges views with the other nodes' daemons, and publishes to jobs how much each NIC may carry.");
  app.name("r2ccd");
  app.set_version_flag("--version", Version());
  app.add_option(
      "--config", flags.file,
      "text-format r2cc.v1.DaemonConfig; NAME.d/*.textproto next to NAME.textproto add to it; default: this host's name, every usable "
      "interface, no peers");
  app.add_option("--run_dir", flags.run_dir,
                 "directory of attach.sock, which jobs mount; r2ccd.sock and the lock are in DIR-control, mode 0750")
      ->capture_default_str();
  app.add_option("--state_dir", flags.state_dir, "directory of what is kept over restarts and reboots, such as operators' drains")
      ->capture_default_str();
  app.add_option("--node", flags.node, "this node's name; wins over the configuration");
  app.add_option("--log_level", log_level, "debug, info, warning or error; wins over the configuration");
  app.add_option("--log_format", log_format, "text or json: an object a line; in the journal, text is an entry with fields")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  // For tests of machines whose clocks are wrong; not in --help.
  app.add_option("--wall_clock_offset_s", wall_clock_offset_s)->group("");
  app.add_flag("--check_config", check_config, "check the configuration and end");
  app.add_option("--service_user", service_user, "with --check_config, for root: whether this user can read certificates and keys")
      ->capture_default_str();
  AddHelpJson(&app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    std::fprintf(stderr, "r2ccd: %s; see r2ccd --help\n", error.what());
    return kExitUsage;
  }
  flags.wall_clock_offset = wall_clock_offset_s * kNanosPerSecond;
  flags.log_level = ParseSeverity(log_level);
  if (!log_level.empty() && !flags.log_level.has_value()) {
    std::fprintf(stderr, "r2ccd: --log_level is debug, info, warning or error, not '%s'\n", log_level.c_str());
    return kExitUsage;
  }
  if (flags.log_level.has_value()) SetMinSeverity(*flags.log_level);
  const char* const journal = std::getenv("JOURNAL_STREAM");
  const bool json = log_format == "json";
  const bool for_journal = !json && journal != nullptr && IsJournal(journal, STDERR_FILENO);
  LogWithoutWaiting();
  if (json) LogAsJson();
  if (for_journal) LogForJournal(JournalSocket::kPath);
  // The distributions' abseil looks for deadlocks at every lock, by a graph of all locks: for those who debug.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  // A core, or a debugger of r2ccd's user, would have the node's key: the unit sets the same, and containers have no unit.
  prctl(PR_SET_DUMPABLE, 0);
  if (const absl::Status status = RaiseDescriptorLimit(); !status.ok() && !check_config) {
    std::fprintf(stderr, "%sr2ccd: %s\n", for_journal ? JournalPrefix(Severity::kError).c_str() : "",
                 std::string(status.message()).c_str());
    return kExitFailed;
  }
  Signals signals;
  umask(007);
  RedirectGrpcLog();
  const Manager manager = FindManager();
  FileConfigLoader loader(flags, [offset = wall_clock_offset_s] { return absl::ToUnixSeconds(absl::Now()) + offset; });
  absl::Status status;
  if (check_config) {
    absl::StatusOr<LoadedConfig> loaded = loader.Load(nullptr);
    if (loaded.ok())
      if (absl::Status fit = CheckAsService(loaded->config, service_user); !fit.ok()) loaded = std::move(fit);
    status = loaded.status();
    const std::vector<std::string> warnings = loaded.ok() ? ConfigWarnings(*loaded) : std::vector<std::string>();
    if (json) return std::fputs(CheckedConfigAsJson(flags.file, loaded, warnings).c_str(), stdout) >= 0 && loaded.ok() ? 0 : kExitFailed;
    if (loaded.ok()) std::printf("%s\n", SoundConfigLine(loaded->config).c_str());
    for (const std::string& warning : warnings) std::fprintf(stderr, "r2ccd: warning: %s\n", warning.c_str());
  } else {
    status = Start(flags, &loader, &signals, manager);
  }
  if (status.ok()) return 0;
  if (manager.sink != nullptr && !check_config) manager.sink->Notify(absl::StrCat("STATUS=", status.message()));
  if (json)
    LogError(std::string(status.message()));
  else
    std::fprintf(stderr, "%sr2ccd: %s\n", for_journal ? JournalPrefix(Severity::kError).c_str() : "",
                 absl::StrReplaceAll(status.message(), {{"\n", "\nr2ccd: "}}).c_str());
  return kExitFailed;
}

}  // namespace
}  // namespace r2cc::daemon

int main(int argc, char** argv) { return r2cc::daemon::Main(argc, argv); }
