// Parses the flags of r2cc-perf: those of nccl-tests, and its own.
#ifndef R2CC_TOOLS_PERF_OPTIONS_H_
#define R2CC_TOOLS_PERF_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "netplugin/abi/nccl_types.h"
#include "tools/perf/launched_rank.h"
#include "tools/perf/schedule.h"

namespace r2cc::perf {

struct Options {
  std::string plugin;
  int table_version = 0;  // 0: the newest that both know
  Collective collective = Collective::kAllReduce;
  std::vector<int64_t> sizes_bytes;
  int iterations = 20;
  int warmup_iterations = 5;
  int aggregate = 1;  // collectives in an iteration, one after another without a pause
  abi::DataType type = abi::DataType::kFloat32;
  std::optional<uint64_t> random_seed;  // none: values that are exact in every sum
  bool check = true;
  bool slot_checks = true;
  int channels = 0;      // 0: one per device
  double seconds = 0;    // 0: the number of iterations counts
  double timeout_s = 0;  // 0: none
  int idle_sleep_us = 30;
  double progress_s = 2;
  bool json = false;
  bool debug = false;
  bool collnet = false;  // by the plugin's CollNet table instead of its net table
  std::string trace_prefix;
  std::string profiler;  // the path of a profiler plugin; empty: none
  int fork_children = 0;
  int pin = 0;  // processors of each rank; 0: it may use all

  int ranks = 0;     // of the whole job
  int rank = -1;     // -1: start all ranks here
  std::string root;  // HOST:PORT; with rank >= 0

  // The options that all ranks of a job must agree on.
  std::string Job() const;
};

// The name that nccl-tests use: of one of kFloat32, kFloat16 and kBfloat16.
const char* TypeName(abi::DataType type);

// "8", "64K", "1.5M", "2GiB": bytes, suffixes are powers of 1024.
std::optional<int64_t> ParseSize(std::string_view text);

// The sizes from first to last as nccl-tests walks them: times factor if above 1, otherwise plus step.
std::optional<std::vector<int64_t>> SizesOf(int64_t first, int64_t last, double factor, int64_t step);

// If the flags do not name the rank, `environment` may: mpirun's, srun's, torchrun's. On false everything is printed, and the process must
// end with *exit_code.
bool ParseOptions(int argc, char** argv, const Environment& environment, Options* options, int* exit_code);

}  // namespace r2cc::perf

#endif  // R2CC_TOOLS_PERF_OPTIONS_H_
