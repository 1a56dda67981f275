#include "tools/perf/profiled_runner.h"

#include <dlfcn.h>
#include <unistd.h>

#include <utility>

#include "tools/perf/schedule.h"

namespace r2cc::perf {
namespace {

// "all_reduce" is "AllReduce".
std::string NcclName(Collective collective) {
  std::string name;
  bool begins = true;
  for (const char c : std::string(CollectiveName(collective))) {
    if (c != '_') name += begins && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    begins = c == '_';
  }
  return name;
}

}  // namespace

ProfiledRunner::ProfiledRunner(const abi::ProfilerTableV5* table, const Options& options, int rank, std::unique_ptr<Runner> runner)
    : table_(table),
      function_(NcclName(options.collective)),
      rank_(rank),
      peers_(SendPeers(options.collective, rank, options.ranks)),
      runner_(std::move(runner)) {
  for (const int peer : RecvPeers(options.collective, rank, options.ranks)) peers_.push_back(peer);
}

Status ProfiledRunner::Make(const Options& options, uint64_t comm_id, int rank, abi::Logger log, std::unique_ptr<Runner> runner,
                            std::unique_ptr<Runner>* profiled) {
  void* const library = dlopen(options.profiler.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return Status::Error("cannot load the profiler: " + std::string(dlerror()));
  const auto* const table = static_cast<const abi::ProfilerTableV5*>(dlsym(library, "ncclProfiler_v5"));
  if (table == nullptr) return Status::Error("the library '" + options.profiler + "' exports no ncclProfiler_v5");
  std::unique_ptr<ProfiledRunner> made(new ProfiledRunner(table, options, rank, std::move(runner)));
  const abi::Result result = table->init(&made->context_, comm_id, &made->mask_, "r2cc-perf", options.ranks, options.ranks, rank, log);
  if (result != abi::Result::kSuccess) return Status::Error("init of the profiler returned " + std::string(abi::ResultName(result)));
  *profiled = std::move(made);
  return {};
}

void* ProfiledRunner::Start(uint64_t type, void* parent, int peer) {
  if ((static_cast<uint64_t>(mask_) & type) == 0) return nullptr;
  abi::ProfilerEventV5 event{};
  event.type = type;
  event.parent = parent;
  event.rank = rank_;
  if (type == abi::kProfileProxyOp)
    event.proxy_op = {.pid = getpid(), .channel = 0, .peer = peer, .steps = 1, .chunk_bytes = 0, .is_send = 1};
  else
    event.coll = {.sequence = sequence_, .function = function_.c_str()};
  void* handle = nullptr;
  table_->start_event(context_, &handle, &event);
  return handle;
}

Status ProfiledRunner::Run(const Work& work) {
  void* const collective = Start(abi::kProfileColl, nullptr, 0);
  if (collective != nullptr) table_->stop_event(collective);  // it is enqueued
  ++sequence_;
  std::vector<void*> parts;
  for (const int peer : peers_) parts.push_back(Start(abi::kProfileProxyOp, collective, peer));
  const Status status = runner_->Run(work);
  for (void* const part : parts)
    if (part != nullptr) table_->stop_event(part);
  return status;
}

}  // namespace r2cc::perf
