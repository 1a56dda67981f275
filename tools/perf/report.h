// Prints rank 0's results: nccl-tests' table, and one JSON object.
#ifndef R2CC_TOOLS_PERF_REPORT_H_
#define R2CC_TOOLS_PERF_REPORT_H_

#include <string>

#include "tools/perf/conductor.h"
#include "tools/perf/options.h"

namespace r2cc::perf {

// The devices and channels of the run.
struct RunInfo {
  std::string net_name;
  int net_version = 0;
  int channels = 0;
  std::string devices;  // "eth0, eth1 (RDMA, mlx5_0)": the plugin's names
};

std::string TableHeader(const Options& options, const RunInfo& info);
std::string TableRow(const Options& options, const Row& row);
std::string TableFooter(const Options& options, const Conductor& conductor);

// True if all data were correct and no slot was written late.
bool Passed(const Conductor& conductor);

// One line. error: empty if the run came to its end.
//   {"collective","ranks","channels","collnet","type","plugin","net_name","net_version","devices","wrong_elements","late_writes","checked",
//    "stopped","pass","error"?,
//    "rows":[{"size_bytes","count","iterations","time_us","time_us_median","time_us_min","time_us_max","cpu_us","algbw_gbps","busbw_gbps",
//             "wrong","hash"?}]}
// Bandwidths are in 1e9 bit/s here; the table keeps nccl-tests' 1e9 byte/s. cpu_us: what all ranks together spent on an iteration.
std::string Json(const Options& options, const RunInfo& info, const Conductor& conductor, const std::string& error);

}  // namespace r2cc::perf

#endif  // R2CC_TOOLS_PERF_REPORT_H_
