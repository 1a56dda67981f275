// Runs collectives on a rank's connections: NCCL's progress thread and the part of its kernels that copies and reduces, on one CPU thread.
#ifndef R2CC_TOOLS_PERF_PROGRESS_LOOP_H_
#define R2CC_TOOLS_PERF_PROGRESS_LOOP_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "tools/perf/flow.h"
#include "tools/perf/idle.h"
#include "tools/perf/schedule.h"
#include "tools/perf/status.h"
#include "tools/perf/trace.h"

namespace r2cc::perf {

struct Channel {
  std::vector<std::unique_ptr<SendFlow>> sends;
  std::vector<std::unique_ptr<ReceiveFlow>> receives;
};

class ProgressLoop {
 public:
  ProgressLoop(std::vector<Channel>* channels, Trace* trace, const Idle& idle) : channels_(channels), trace_(trace), idle_(idle) {}

  // Runs the same collective `times` times, one after another without a pause, from start to the last completion; then writes the trace.
  // sequencers: one per channel, not begun; used up. Progress thread only.
  Status Run(std::vector<Sequencer>* sequencers, int times, const float* input, float* output, int64_t iteration, int64_t algorithm_bytes);
  // The time that all of them took.
  int64_t duration_ns() const { return duration_ns_; }

  // Makes Run end soon, with an error. Any thread.
  void Cancel() { cancelled_ = true; }
  bool running() const { return running_; }

 private:
  Status Drive(std::vector<Sequencer>* sequencers, const float* input, float* output);
  Status Step(Channel* channel, Sequencer* sequencer, const float* input, float* output, bool* moved);
  Status Execute(Channel* channel, const Op& op, const float* input, float* output);
  Status Wait(int rounds, int64_t* progressed_ns);
  Status TimedOut(int64_t now_ns) const;

  std::vector<Channel>* const channels_;
  Trace* const trace_;
  const Idle idle_;
  int64_t duration_ns_ = 0;
  std::atomic<bool> cancelled_{false};
  std::atomic<bool> running_{false};
};

}  // namespace r2cc::perf

#endif  // R2CC_TOOLS_PERF_PROGRESS_LOOP_H_
