#include "netplugin/plugin/process.h"

#include <sys/random.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <new>

#include "base/core/fork_guard.h"
#include "base/core/hash.h"
#include "base/core/release.h"
#include "netplugin/attach/attach_client.h"
#include "netplugin/attach/attach_packets.h"
#include "netplugin/config/profiler_choice.h"
#include "netplugin/config/run_id.h"
#include "netplugin/link/frame.h"
#include "netplugin/plugin/verbs_rails.h"
#include "netplugin/rails/daemon_rails.h"
#include "netplugin/rails/link_monitor.h"
#include "netplugin/transport/tcp/descriptors.h"
#include "netplugin/transport/tcp/tcp_transport.h"
#include "plan/page/attach.h"
#include "plan/page/page.h"
#include "plan/page/ring.h"

namespace r2cc::net {
namespace {

uint64_t RandomId() {
  uint64_t id = 0;
  while (getrandom(&id, sizeof(id), 0) != sizeof(id)) {
  }
  return id;
}

// For the line with which a job starts.
std::string Version() {
  return ReleaseAndRevision() + ", " +
         ProtocolText({{"wire", kWireVersionLeast, kWireVersion},
                       {"attach", plan::kAttachVersionLeast, plan::kAttachVersion},
                       {"page", plan::kPageVersionLeast, plan::kPageVersion},
                       {"ring", plan::kRingVersion, plan::kRingVersion}});
}

}  // namespace

Process& Process::Get() {
  alignas(Process) static unsigned char memory[sizeof(Process)];
  static Process* const process = new (memory) Process;
  return *process;
}

abi::Result Process::Start() {
  // The parent's threads are not here, and its locks may be held by them for ever.
  if (fork_guard::InForkedChild()) return abi::Result::kInternalError;
  if (ready_.load(std::memory_order_acquire)) return abi::Result::kSuccess;
  const MutexLock lock(mutex_);
  if (!started_) {
    started_ = true;
    result_ = StartLocked();
    ready_ = result_ == abi::Result::kSuccess;
  }
  return result_;
}

abi::Result Process::StartLocked() {
  Engine::Parts parts;
  std::string error;
  const auto refuse = [&](abi::Result result) {
    Log(LogLevel::kWarn, error.rfind("R2CC", 0) == 0 ? error : "R2CC: " + error);
    return result;
  };
  if (!LoadConfig(FromEnvironment, &parts.config, &error)) return refuse(abi::Result::kInvalidUsage);
  FillFromSystem(&parts.config);
  level_ = parts.config.log;
  node_key_ = Fnv1a64(parts.config.node);
  deadline_ = parts.config.deadline_ms * kNanosPerMs;
  collnet_deadline_ = parts.config.collnet_deadline_ms * kNanosPerMs;
  const char* const enabled = FromEnvironment("NCCL_COLLNET_ENABLE");
  collnet_ = parts.config.mode == Mode::kDegradedAllReduce || (enabled != nullptr && std::atoi(enabled) != 0);
  for (const std::string& line : UnknownVariables(environ)) Log(LogLevel::kWarn, line);
  if (const std::string line = SeveralProfilers(FromEnvironment("NCCL_PROFILER_PLUGIN")); !line.empty())
    Log(LogLevel::kWarn, "R2CC: " + line);
  RaiseDescriptorsMost();

  SystemHostNetwork host;
  RdmaPorts rdma;
  std::vector<std::string> warnings, daemon_warnings;
  if (parts.config.transport != TransportOption::kTcp) rdma = FindRdmaPorts();
  std::string spec = parts.config.rails;
  if (const auto file = spec.empty() ? ReadRailsFile(parts.config.attach_socket) : std::nullopt; file.has_value())
    spec = DaemonRails(*file, host, rdma.ports, &daemon_warnings);
  const bool resolved = ResolveRails(spec, host, rdma.ports, &rails_, &error, &warnings);
  // Where verbs is asked for and there is none the start fails by that line.
  const bool fails_by_it = resolved && rdma.ports.empty() && parts.config.transport == TransportOption::kVerbs;
  if (!rdma.error.empty() && !fails_by_it) Log(rdma.has_devices || !resolved ? LogLevel::kWarn : LogLevel::kInfo, rdma.error);
  if (!resolved) return refuse(abi::Result::kInvalidUsage);
  for (const std::string& line : daemon_warnings) Log(LogLevel::kWarn, line);
  for (const std::string& line : warnings) Log(LogLevel::kWarn, line);
  if (spec != parts.config.rails) Log(LogLevel::kInfo, "R2CC: R2CC_RAILS is not set: the rails are the NICs of this node's r2ccd: " + spec);
  if (!ChooseOobAddress(parts.config.oob_ifname, rails_, host, &parts.oob_address, &error)) return refuse(abi::Result::kInvalidUsage);
  parts.link_events = std::make_unique<NoLinkEvents>();
  if (parts.config.link_monitor) {
    parts.link_events = LinkMonitor::Create(rails_, &error);
    if (parts.link_events == nullptr) return refuse(abi::Result::kSystemError);
  }
  parts.log = [this](LogLevel level, const std::string& line) { Log(level, line); };
  parts.release = Release();
  parts.run = RunOf(FromEnvironment);
  prints_last_line_ = parts.run.rank.value_or(0) == 0;
  parts.daemon = MakeDaemonLink(parts.config.attach_socket,
                                MakeAttachRequest(parts.config.job, getpid(), RandomId(), rails_, parts.release), parts.log);
  parts.rails = rails_;
  parts.held_operations = [this](uint64_t communicator, Nanos begun, Nanos ended, std::span<abi::HeldOperationV1> held) {
    const abi::HeldOperationsV1 ask = held_.load();
    return ask == nullptr ? 0 : ask(communicator, begun, ended, held.data(), held.size());
  };
  parts.make_transport = TcpTransport::Maker(parts.config);
  parts.make_rail_transport = MakeVerbsRails;
  parts.gpu = &gpu_;
  engine_ = Engine::Start(std::move(parts), &error);
  if (engine_ == nullptr) return refuse(abi::Result::kSystemError);
  if (!fork_guard::InstallOnce()) Log(LogLevel::kWarn, "R2CC: cannot close the sockets of forked children: out of memory");
  std::atexit(AtExit);
  Log(LogLevel::kInfo, "R2CC: " + Version());
  Log(LogLevel::kInfo, engine_->DescribeRails());
  for (size_t rail = 0; rail < rails_.size(); ++rail) device_names_.push_back(engine_->RailName(rail));
  return abi::Result::kSuccess;
}

void Process::Log(LogLevel level, const char* begin, const char* end) const {
  if (level > level_.load()) return;
  const abi::Logger logger = logger_.load();
  if (logger == nullptr) {
    std::fprintf(stderr, "%s%s\n", begin, end);
    return;
  }
  logger(level == LogLevel::kWarn ? abi::DebugLogLevel::kWarn : abi::DebugLogLevel::kInfo, abi::kLogNet, __FILE__, __LINE__, "%s%s", begin,
         end);
}

void Process::RemoveContext() {
  if (--contexts_ > 0 || !ready_.load()) return;
  for (const std::string& line : engine_->Summary()) Log(LogLevel::kInfo, line);
}

void Process::AtExit() {
  if (fork_guard::InForkedChild()) return;
  Process& process = Get();
  const MutexLock lock(process.mutex_);
  // NCCL's logger may be gone already.
  process.logger_.store(nullptr);
  // Who still calls finds the engine, stopped: NCCL's threads may outlive this.
  process.result_ = abi::Result::kInternalError;
  process.ready_ = false;
  process.engine_->Stop();
  if (!process.prints_last_line_) return;
  if (const std::string line = process.engine_->LastLine(); !line.empty()) process.Log(LogLevel::kWarn, line);
}

ReduceWorkers* Process::reduce_workers(std::string* error) {
  const MutexLock lock(mutex_);
  if (reduce_workers_ == nullptr) {
    const Processors processors = Processors::OfMainThread();
    reduce_workers_ = ReduceWorkers::Start(ReduceWorkers::ThreadsFor(processors.count()), processors, error);
  }
  return reduce_workers_.get();
}

}  // namespace r2cc::net
