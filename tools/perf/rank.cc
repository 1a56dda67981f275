#include "tools/perf/rank.h"

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "tools/perf/bootstrap.h"
#include "tools/perf/clock.h"
#include "tools/perf/collnet.h"
#include "tools/perf/collnet_runner.h"
#include "tools/perf/conductor.h"
#include "tools/perf/net.h"
#include "tools/perf/profiled_runner.h"
#include "tools/perf/report.h"
#include "tools/perf/ring_runner.h"
#include "tools/perf/sleepers.h"
#include "tools/perf/trace.h"
#include "tools/perf/values.h"
#include "tools/perf/worker.h"

namespace r2cc::perf {
namespace {

using abi::Result;

constexpr int kConnectTimeoutS = 120;
constexpr int kPollMs = 200;
constexpr int kOwnErrorMs = 1000;

// The plugin's logger and a signal handler have no argument of ours.
volatile sig_atomic_t stop_wanted = 0;
int log_rank = -1;
bool log_info = false;
const char* log_net_name = "?";

void OnSignal(int) { stop_wanted = 1; }

void Log(abi::DebugLogLevel level, unsigned long, const char*, int, const char* format, ...) {
  if (level != abi::DebugLogLevel::kWarn && !log_info) return;
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  fprintf(stderr, "r2cc-perf[%d] NET/%s %s %s\n", log_rank, log_net_name, level == abi::DebugLogLevel::kWarn ? "WARN" : "INFO", text);
}

template <typename T>
std::string Bytes(const T& value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
}

template <typename T>
Status FromBytes(const std::string& bytes, T* value) {
  if (bytes.size() != sizeof(*value))
    return Status::Error("a message of the bootstrap has " + std::to_string(bytes.size()) + " bytes, not " +
                         std::to_string(sizeof(*value)));
  memcpy(value, bytes.data(), sizeof(*value));
  return {};
}

// Zero pages until used, never copied.
class Buffer {
 public:
  Status Allocate(int64_t elements) {
    bytes_ = std::max<size_t>(static_cast<size_t>(elements) * sizeof(float), 1);
    void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return Status::Error("no memory for a buffer of " + std::to_string(bytes_) + " bytes; choose a smaller -e");
    data_ = static_cast<float*>(memory);
    return {};
  }
  ~Buffer() {
    if (data_ != nullptr) munmap(data_, bytes_);
  }
  float* data() { return data_; }

 private:
  float* data_ = nullptr;
  size_t bytes_ = 0;
};

class RankRun {
 public:
  RankRun(const Options& options, int rank)
      : options_(options), rank_(rank), values_(options, rank), service_("perf-service"), progress_("perf-progress"), conductor_(options) {}

  int Run(int listen_fd);

 private:
  Status Start(int listen_fd);
  Status LoadPlugin();
  Status AgreeOnChannels(int devices);
  Status Connect();
  Status Loop();
  Status RunIteration(const Command& command, Report* report);
  Status Finish();
  Status Barrier();
  Status NextCommand(const Report& report, Command* command);
  // Lets the worker run the task and watches the other ranks meanwhile.
  Status RunOn(Worker* worker, std::function<Status()> task);
  void MaybePrintProgress();
  void PrintNewRows();
  [[noreturn]] void Die(const Status& status);

  const Options options_;
  const int rank_;
  Values values_;
  Bootstrap bootstrap_;
  std::unique_ptr<Net> net_;
  RunInfo info_;
  Trace trace_;
  Sleepers sleepers_;
  std::unique_ptr<CollNet> collnet_;
  std::unique_ptr<Runner> runner_;
  Worker service_;
  Worker progress_;
  // Tasks of the threads work on members only: after a failure elsewhere a thread may outlive the function that started it.
  std::string handles_;
  std::vector<std::string> all_handles_;
  Work work_;
  Buffer input_;
  Buffer output_;

  Conductor conductor_;  // rank 0's counts
  size_t rows_printed_ = 0;
  int64_t next_progress_ns_ = 0;
  int64_t started_ns_ = 0;
  bool connected_ = false;
  Command command_;
};

int RankRun::Run(int listen_fd) {
  started_ns_ = NowNs();
  next_progress_ns_ = started_ns_ + static_cast<int64_t>(options_.progress_s * 1e9);
  Status status = Start(listen_fd);
  if (status.ok()) status = Loop();
  if (status.ok()) status = Finish();
  if (!status.ok()) Die(status);
  if (rank_ != 0) return 0;
  fputs(TableFooter(options_, conductor_).c_str(), stdout);
  if (options_.json) printf("%s\n", Json(options_, info_, conductor_, "").c_str());
  fflush(stdout);
  return Passed(conductor_) ? 0 : 1;
}

void RankRun::Die(const Status& status) {
  fprintf(stderr, "r2cc-perf[%d]: %s\n", rank_, status.message().c_str());
  sleepers_.End();
  bootstrap_.Fail(status.message());
  if (runner_ != nullptr && runner_->running()) {  // let it write the end of the trace; a plugin that blocks is not waited for
    runner_->Cancel();
    pollfd done{progress_.done_fd(), POLLIN, 0};
    poll(&done, 1, kPollMs);
  }
  if (rank_ == 0 && options_.json) printf("%s\n", Json(options_, info_, conductor_, status.message()).c_str());
  fflush(stdout);
  // As a job's process outlives its error until a watchdog ends it: else the others would see this rank vanish before they come to theirs.
  if (connected_) poll(nullptr, 0, kOwnErrorMs);
  _exit(1);
}

Status RankRun::Start(int listen_fd) {
  R2CC_PERF_RETURN_IF_ERROR(rank_ == 0 ? bootstrap_.Accept(listen_fd, options_.ranks, options_.Job())
                                       : bootstrap_.Connect(options_.root, rank_, options_.ranks, options_.Job(), kConnectTimeoutS));
  if (!options_.trace_prefix.empty()) R2CC_PERF_RETURN_IF_ERROR(trace_.Open(options_.trace_prefix, rank_));
  R2CC_PERF_RETURN_IF_ERROR(LoadPlugin());
  R2CC_PERF_RETURN_IF_ERROR(Connect());
  R2CC_PERF_RETURN_IF_ERROR(sleepers_.Fork(options_.fork_children, rank_));
  int64_t elements = 0;
  for (const int64_t size : options_.sizes_bytes)
    elements = std::max(elements, BufferElements(options_.collective, CountOf(options_.collective, size, options_.ranks), options_.ranks));
  R2CC_PERF_RETURN_IF_ERROR(input_.Allocate(elements));
  R2CC_PERF_RETURN_IF_ERROR(output_.Allocate(elements));
  connected_ = true;
  if (rank_ == 0) fputs(TableHeader(options_, info_).c_str(), stdout);
  fflush(stdout);
  return {};
}

Status RankRun::LoadPlugin() {
  R2CC_PERF_RETURN_IF_ERROR(LoadNet(options_.plugin, options_.table_version, &net_));
  info_.net_name = net_->name();
  info_.net_version = net_->version();
  log_rank = rank_;
  log_info = options_.debug;
  log_net_name = info_.net_name.c_str();

  uint64_t comm_id = 0;
  if (rank_ == 0 && getrandom(&comm_id, sizeof(comm_id), 0) != sizeof(comm_id)) comm_id = static_cast<uint64_t>(NowNs());
  std::string bytes = Bytes(comm_id);
  R2CC_PERF_RETURN_IF_ERROR(bootstrap_.Broadcast(&bytes));
  R2CC_PERF_RETURN_IF_ERROR(FromBytes(bytes, &comm_id));

  const std::string name = "NET/" + info_.net_name;
  const Result initialised = net_->Init(comm_id, Log);
  if (initialised != Result::kSuccess)
    return Status::Error("init of " + name + " returned " + abi::ResultName(initialised) + "; --debug shows the plugin's messages");
  if (options_.collnet) {
    R2CC_PERF_RETURN_IF_ERROR(LoadCollNet(options_.plugin, info_.net_version, &collnet_));
    if (const Result result = collnet_->Init(comm_id, Log); result != Result::kSuccess)
      return Status::Error("init of COLLNET/" + info_.net_name + " returned " + abi::ResultName(result));
  }
  int devices = 0;
  const Result counted = net_->Devices(&devices);
  if (counted != Result::kSuccess) return Status::Error("devices of " + name + " returned " + std::string(abi::ResultName(counted)));
  if (devices < 1) return Status::Error(name + " offers no device; R2CC_RAILS names the interfaces or addresses to use");
  for (int device = 0; device < devices; ++device) {
    DeviceProperties properties;
    const Result result = net_->GetProperties(device, &properties);
    if (result != Result::kSuccess)
      return Status::Error("getProperties(" + std::to_string(device) + ") of " + name + " returned " + abi::ResultName(result));
    info_.devices += (device == 0 ? "" : ", ") + properties.name;
  }
  R2CC_PERF_RETURN_IF_ERROR(AgreeOnChannels(devices));
  if (options_.profiler.empty()) return {};
  return ProfiledRunner::Make(options_, comm_id, rank_, Log, std::move(runner_), &runner_);
}

// Ranks with fewer devices use some of them for two channels.
Status RankRun::AgreeOnChannels(int devices) {
  std::vector<std::string> all;
  R2CC_PERF_RETURN_IF_ERROR(bootstrap_.AllGather(Bytes(devices), &all));
  info_.channels = options_.collnet ? 1 : options_.channels;
  for (const std::string& one : all) {
    int count = 0;
    R2CC_PERF_RETURN_IF_ERROR(FromBytes(one, &count));
    if (options_.channels == 0 && !options_.collnet) info_.channels = std::max(info_.channels, count);
  }
  Idle idle;
  idle.sleep_us = options_.idle_sleep_us;
  idle.timeout_ns = static_cast<int64_t>(options_.timeout_s * 1e9);
  if (options_.collnet)
    runner_ = std::make_unique<CollNetRunner>(collnet_.get(), &trace_, options_, idle, rank_);
  else
    runner_ = std::make_unique<RingRunner>(net_.get(), &trace_, options_, idle, rank_, info_.channels, devices);
  return {};
}

Status RankRun::Connect() {
  R2CC_PERF_RETURN_IF_ERROR(RunOn(&service_, [this] { return runner_->Listen(&handles_); }));
  R2CC_PERF_RETURN_IF_ERROR(bootstrap_.AllGather(handles_, &all_handles_));
  return RunOn(&service_, [this] { return runner_->Connect(all_handles_, static_cast<int64_t>(options_.timeout_s * 1e9)); });
}

Status RankRun::Loop() {
  Report report;
  int64_t size_index = -1;
  for (;;) {
    if (stop_wanted) report.stop_wanted = 1;
    report.cpu_ns = ProcessCpuNs();
    R2CC_PERF_RETURN_IF_ERROR(NextCommand(report, &command_));
    if (command_.run == 0) return {};
    if (command_.size_index < 0 || command_.size_index >= static_cast<int64_t>(options_.sizes_bytes.size()))
      return Status::Error("rank 0 asked for a size that does not exist");
    if (command_.size_index != size_index) {
      size_index = command_.size_index;
      runner_->CheckAllSlots();
    }
    R2CC_PERF_RETURN_IF_ERROR(RunIteration(command_, &report));
  }
}

Status RankRun::NextCommand(const Report& report, Command* command) {
  std::vector<std::string> all;
  R2CC_PERF_RETURN_IF_ERROR(bootstrap_.Gather(Bytes(report), &all));
  std::string answer;
  if (rank_ == 0) {
    std::vector<Report> reports(all.size());
    for (size_t i = 0; i < all.size(); ++i) R2CC_PERF_RETURN_IF_ERROR(FromBytes(all[i], &reports[i]));
    MaybePrintProgress();
    answer = Bytes(conductor_.Next(reports, NowNs()));
    PrintNewRows();
  }
  R2CC_PERF_RETURN_IF_ERROR(bootstrap_.Broadcast(&answer));
  return FromBytes(answer, command);
}

Status RankRun::RunIteration(const Command& command, Report* report) {
  const int64_t count = CountOf(options_.collective, options_.sizes_bytes[command.size_index], options_.ranks);
  const int64_t elements = BufferElements(options_.collective, count, options_.ranks);
  const auto iteration = static_cast<uint32_t>(command.iteration);
  values_.Fill(input_.data(), output_.data(), elements, iteration);
  R2CC_PERF_RETURN_IF_ERROR(Barrier());
  work_ = {count, elements, options_.aggregate, input_.data(), output_.data(), command.iteration};
  R2CC_PERF_RETURN_IF_ERROR(RunOn(&progress_, [this] { return runner_->Run(work_); }));
  report->duration_ns = runner_->duration_ns();
  values_.Judge(output_.data(), count, iteration, report);
  report->late_writes = runner_->late_writes();
  return {};
}

Status RankRun::Finish() {
  Report report;
  const int64_t now = NowNs();
  runner_->CheckAllSlots();
  report.late_writes = runner_->late_writes();
  runner_->TraceOpen(now);
  trace_.Flush(now);
  std::vector<std::string> all;
  R2CC_PERF_RETURN_IF_ERROR(bootstrap_.Gather(Bytes(report), &all));
  std::vector<Report> reports(all.size());
  for (size_t i = 0; i < all.size(); ++i) R2CC_PERF_RETURN_IF_ERROR(FromBytes(all[i], &reports[i]));
  if (rank_ == 0) conductor_.TakeFinalReports(reports);
  // From here on ranks end at their own pace, as under NCCL; the last barrier only keeps the bootstrap connections until all are done.
  R2CC_PERF_RETURN_IF_ERROR(RunOn(&service_, [&] { return runner_->Close(); }));
  const Result result = net_->Finalize();
  if (result != Result::kSuccess) return Status::Error("finalize returned " + std::string(abi::ResultName(result)));
  return Barrier();
}

Status RankRun::Barrier() {
  std::vector<std::string> all;
  std::string nothing;
  R2CC_PERF_RETURN_IF_ERROR(bootstrap_.Gather("", &all));
  return bootstrap_.Broadcast(&nothing);
}

Status RankRun::RunOn(Worker* worker, std::function<Status()> task) {
  worker->Start(std::move(task));
  bool ready = false;
  while (!ready) {
    const Status others = bootstrap_.WaitFor(worker->done_fd(), kPollMs, &ready);
    if (!others.ok()) {
      // As in a job each rank comes to its own error, where it has one.
      pollfd done{worker->done_fd(), POLLIN, 0};
      const Status own = poll(&done, 1, kOwnErrorMs) > 0 ? worker->Take() : Status();
      return own.ok() ? others : own;
    }
    MaybePrintProgress();
  }
  return worker->Take();
}

void RankRun::MaybePrintProgress() {
  if (rank_ != 0 || options_.progress_s <= 0) return;
  const int64_t now = NowNs();
  if (now < next_progress_ns_) return;
  next_progress_ns_ = now + static_cast<int64_t>(options_.progress_s * 1e9);
  const double seconds = static_cast<double>(now - started_ns_) / 1e9;
  if (command_.run == 0) {
    fprintf(stderr, "r2cc-perf: %.0f s, %s connections\n", seconds, rows_printed_ == 0 ? "making" : "closing");
    return;
  }
  const Row& row = conductor_.current();
  fprintf(stderr, "r2cc-perf: %.0f s, %s %lld B, iteration %lld, %lld timed, mean %.1f ms, busbw %.3f GB/s, %lld wrong, %lld late writes\n",
          seconds, CollectiveName(options_.collective), static_cast<long long>(row.size_bytes), static_cast<long long>(command_.iteration),
          static_cast<long long>(row.iterations), row.time_us / 1e3, row.bus_bytes_per_second * 1e-9,
          static_cast<long long>(conductor_.wrong_elements()), static_cast<long long>(conductor_.late_writes()));
}

void RankRun::PrintNewRows() {
  for (; rows_printed_ < conductor_.rows().size(); ++rows_printed_)
    fputs(TableRow(options_, conductor_.rows()[rows_printed_]).c_str(), stdout);
  fflush(stdout);
}

}  // namespace

int RunRank(const Options& options, int rank, int listen_fd) {
  struct sigaction action {};
  action.sa_handler = OnSignal;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  return RankRun(options, rank).Run(listen_fd);
}

}  // namespace r2cc::perf
