// Runs collectives over the net table's flows: channels of rings, or each rank to each other.
#ifndef R2CC_TOOLS_PERF_RING_RUNNER_H_
#define R2CC_TOOLS_PERF_RING_RUNNER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tools/perf/idle.h"
#include "tools/perf/net.h"
#include "tools/perf/options.h"
#include "tools/perf/progress_loop.h"
#include "tools/perf/runner.h"
#include "tools/perf/schedule.h"
#include "tools/perf/setup.h"
#include "tools/perf/trace.h"

namespace r2cc::perf {

class RingRunner final : public Runner {
 public:
  // Its arguments outlive it.
  RingRunner(Net* net, Trace* trace, const Options& options, const Idle& idle, int rank, int channels, int devices);

  Status Listen(std::string* handles) override { return setup_.Listen(handles); }
  Status Connect(const std::vector<std::string>& all_handles, int64_t timeout_ns) override {
    return setup_.Connect(all_handles, timeout_ns);
  }
  Status Close() override { return setup_.Close(); }
  Status Run(const Work& work) override;
  int64_t duration_ns() const override { return loop_.duration_ns(); }
  void CheckAllSlots() override;
  int64_t late_writes() const override;
  void TraceOpen(int64_t now_ns) override;
  void Cancel() override { loop_.Cancel(); }
  bool running() const override { return loop_.running(); }

 private:
  const Collective collective_;
  const int rank_;
  const int ranks_;
  std::vector<Channel> channels_;
  std::vector<Sequencer> sequencers_;
  Setup setup_;
  ProgressLoop loop_;
};

}  // namespace r2cc::perf

#endif  // R2CC_TOOLS_PERF_RING_RUNNER_H_
