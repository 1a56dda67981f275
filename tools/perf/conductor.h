// Decides for rank 0 what all ranks do next, and keeps the results of the run. Pure, time is an argument.
#ifndef R2CC_TOOLS_PERF_CONDUCTOR_H_
#define R2CC_TOOLS_PERF_CONDUCTOR_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "tools/perf/options.h"

namespace r2cc::perf {

// The message of a rank at the barrier after an iteration (zeros except cpu_ns before the first). Sent in its memory layout, because all
// ranks run the same program.
struct Report {
  int64_t duration_ns = 0;
  int64_t wrong_elements = 0;
  int64_t late_writes = 0;  // of the whole run so far
  int64_t stop_wanted = 0;  // a signal came
  int64_t cpu_ns = 0;       // user and system time of the rank's process so far, all threads
  uint64_t hash = 0;        // with --random: of the result
};

// Rank 0's answer.
struct Command {
  int64_t run = 0;  // 0: the run is over
  int64_t size_index = 0;
  int64_t iteration = 0;  // running number over the whole run; the data depend on it
  int64_t timed = 0;      // 0: warm-up
};

struct Row {
  int64_t size_bytes = 0;  // what is moved: alltoall rounds the requested size down to a multiple of the ranks
  int64_t count = 0;
  int64_t iterations = 0;
  double time_us = 0;         // mean over the timed iterations of the slowest rank's time
  double time_us_median = 0;  // of the same times
  double time_us_min = 0;
  double time_us_max = 0;
  double algorithm_bytes_per_second = 0;
  double bus_bytes_per_second = 0;
  double cpu_us = 0;  // mean over the timed iterations of all ranks' CPU time from barrier to barrier, checks included
  int64_t wrong = 0;  // elements, warm-up included
  // With --random: of all results, on all ranks. If a result has a different hash, all its elements count as wrong.
  std::optional<uint64_t> hash;
};

class Conductor {
 public:
  explicit Conductor(const Options& options);

  // reports: one per rank, of the last iteration. Once a rank wants to stop, it orders no other size and no other iteration.
  Command Next(const std::vector<Report>& reports, int64_t now_ns);

  const std::vector<Row>& rows() const { return rows_; }
  // The unfinished row, as far as it got; iterations 0 if nothing is timed yet.
  const Row& current() const { return row_; }
  int64_t wrong_elements() const { return wrong_; }
  int64_t late_writes() const { return late_writes_; }
  bool stopped() const { return stopped_; }
  void TakeFinalReports(const std::vector<Report>& reports);

 private:
  bool SizeIsDone(int64_t now_ns) const;
  void StartSize(int64_t now_ns);
  void Account(const std::vector<Report>& reports);
  int64_t CountOtherResults(const std::vector<Report>& reports);

  const Options options_;
  std::vector<Row> rows_;
  Row row_;
  Command last_;
  int64_t size_index_ = -1;
  int64_t size_started_ns_ = 0;
  int64_t warmups_ = 0;
  std::vector<double> times_us_;  // of the unfinished row
  double total_us_ = 0;
  int64_t cpu_ns_ = 0;  // of all ranks, as last reported
  double total_cpu_us_ = 0;
  int64_t wrong_ = 0;
  int64_t late_writes_ = 0;
  bool stopped_ = false;
};

}  // namespace r2cc::perf

#endif  // R2CC_TOOLS_PERF_CONDUCTOR_H_
