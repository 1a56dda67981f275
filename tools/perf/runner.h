// Runs a rank's collectives: over the flows of the plugin's net table, as NCCL's rings do, or by its CollNet table.
#ifndef R2CC_TOOLS_PERF_RUNNER_H_
#define R2CC_TOOLS_PERF_RUNNER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tools/perf/status.h"

namespace r2cc::perf {

// One iteration.
struct Work {
  int64_t count = 0;     // the parameter of the collective: see CountOf()
  int64_t elements = 0;  // of input and output
  int times = 1;         // how many collectives, one after another without a pause
  const float* input = nullptr;
  float* output = nullptr;
  int64_t iteration = 0;  // for the trace
};

class Runner {
 public:
  virtual ~Runner() = default;

  // ---- the service thread ----

  // *handles: what the other ranks need, the same length on every rank.
  virtual Status Listen(std::string* handles) = 0;
  // all_handles: every rank's, by rank.
  virtual Status Connect(const std::vector<std::string>& all_handles, int64_t timeout_ns) = 0;
  // Deregisters and closes everything that Connect made.
  virtual Status Close() = 0;

  // ---- the progress thread ----

  // Runs from start to the last completion; then writes the trace.
  virtual Status Run(const Work& work) = 0;

  // ---- while nothing runs ----

  // The values of the last run.
  virtual int64_t duration_ns() const = 0;
  // Checks all memory that the plugin must not touch now.
  virtual void CheckAllSlots() = 0;
  // Messages whose memory was found changed after the plugin had reported them done.
  virtual int64_t late_writes() const = 0;
  // Writes the trace's rows of what is still outstanding.
  virtual void TraceOpen(int64_t now_ns) = 0;

  // ---- any thread ----

  // Makes Run end soon, with an error.
  virtual void Cancel() = 0;
  virtual bool running() const = 0;
};

}  // namespace r2cc::perf

#endif  // R2CC_TOOLS_PERF_RUNNER_H_
