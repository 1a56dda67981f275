// Runs collectives and passes their events to a profiler plugin, as NCCL does: each is enqueued, and then has a part to each peer.
#ifndef R2CC_TOOLS_PERF_PROFILED_RUNNER_H_
#define R2CC_TOOLS_PERF_PROFILED_RUNNER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "netplugin/abi/profiler_v5.h"
#include "tools/perf/options.h"
#include "tools/perf/runner.h"

namespace r2cc::perf {

class ProfiledRunner final : public Runner {
 public:
  // Opens options.profiler, which stays loaded. `runner` runs the collectives.
  static Status Make(const Options& options, uint64_t comm_id, int rank, abi::Logger log, std::unique_ptr<Runner> runner,
                     std::unique_ptr<Runner>* profiled);
  ~ProfiledRunner() override { table_->finalize(context_); }

  Status Listen(std::string* handles) override { return runner_->Listen(handles); }
  Status Connect(const std::vector<std::string>& all_handles, int64_t timeout_ns) override {
    return runner_->Connect(all_handles, timeout_ns);
  }
  Status Close() override { return runner_->Close(); }
  Status Run(const Work& work) override;
  int64_t duration_ns() const override { return runner_->duration_ns(); }
  void CheckAllSlots() override { runner_->CheckAllSlots(); }
  int64_t late_writes() const override { return runner_->late_writes(); }
  void TraceOpen(int64_t now_ns) override { runner_->TraceOpen(now_ns); }
  void Cancel() override { runner_->Cancel(); }
  bool running() const override { return runner_->running(); }

 private:
  ProfiledRunner(const abi::ProfilerTableV5* table, const Options& options, int rank, std::unique_ptr<Runner> runner);
  void* Start(uint64_t type, void* parent, int peer);

  const abi::ProfilerTableV5* const table_;
  const std::string function_;  // NCCL's name for it
  const int rank_;
  std::vector<int> peers_;
  const std::unique_ptr<Runner> runner_;
  void* context_ = nullptr;
  int mask_ = 0;
  uint64_t sequence_ = 0;
};

}  // namespace r2cc::perf

#endif  // R2CC_TOOLS_PERF_PROFILED_RUNNER_H_
