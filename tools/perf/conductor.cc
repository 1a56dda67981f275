#include "tools/perf/conductor.h"

#include <algorithm>
#include <cstddef>

#include "tools/perf/random_values.h"

namespace r2cc::perf {

Conductor::Conductor(const Options& options) : options_(options) {}

Command Conductor::Next(const std::vector<Report>& reports, int64_t now_ns) {
  Account(reports);
  const auto sizes = static_cast<int64_t>(options_.sizes_bytes.size());
  if (size_index_ < 0) StartSize(now_ns);
  if (stopped_ || SizeIsDone(now_ns)) {
    if (!times_us_.empty()) {
      const auto middle = times_us_.begin() + static_cast<std::ptrdiff_t>(times_us_.size() / 2);
      std::nth_element(times_us_.begin(), middle, times_us_.end());
      row_.time_us_median = *middle;
    }
    if (row_.iterations > 0 || row_.wrong > 0) rows_.push_back(row_);
    const bool over = stopped_ || size_index_ + 1 >= sizes;
    row_ = {};
    if (over) return last_ = Command{0, size_index_, last_.iteration, 0};
    StartSize(now_ns);
  }
  const bool warm_up = warmups_ < options_.warmup_iterations;
  if (warm_up) ++warmups_;
  const int64_t iteration = last_.run != 0 ? last_.iteration + 1 : 0;
  return last_ = Command{1, size_index_, iteration, warm_up ? 0 : 1};
}

bool Conductor::SizeIsDone(int64_t now_ns) const {
  const bool last_size = size_index_ + 1 == static_cast<int64_t>(options_.sizes_bytes.size());
  if (last_size && options_.seconds > 0)
    return row_.iterations > 0 && static_cast<double>(now_ns - size_started_ns_) >= options_.seconds * 1e9;
  return row_.iterations >= options_.iterations;
}

void Conductor::StartSize(int64_t now_ns) {
  ++size_index_;
  size_started_ns_ = now_ns;
  warmups_ = 0;
  total_us_ = 0;
  total_cpu_us_ = 0;
  times_us_.clear();
  row_ = {};
  row_.count = CountOf(options_.collective, options_.sizes_bytes[size_index_], options_.ranks);
  row_.size_bytes = BufferElements(options_.collective, row_.count, options_.ranks) * static_cast<int64_t>(sizeof(float));
  row_.count *= static_cast<int64_t>(sizeof(float) / BytesOf(options_.type));
}

int64_t Conductor::CountOtherResults(const std::vector<Report>& reports) {
  if (!options_.random_seed.has_value()) return 0;
  if (!row_.hash.has_value()) row_.hash = reports.front().hash;
  return row_.count * std::count_if(reports.begin(), reports.end(), [this](const Report& report) { return report.hash != *row_.hash; });
}

void Conductor::Account(const std::vector<Report>& reports) {
  int64_t slowest_ns = 0, wrong = 0, late_writes = 0, cpu_ns = 0;
  for (const Report& report : reports) {
    slowest_ns = std::max(slowest_ns, report.duration_ns);
    wrong += report.wrong_elements;
    late_writes += report.late_writes;
    cpu_ns += report.cpu_ns;
    stopped_ = stopped_ || report.stop_wanted != 0;
  }
  late_writes_ = late_writes;
  const double cpu_us = static_cast<double>(cpu_ns - cpu_ns_) / 1e3;
  cpu_ns_ = cpu_ns;
  if (last_.run == 0) return;
  wrong += CountOtherResults(reports);
  row_.wrong += wrong;
  wrong_ += wrong;
  if (last_.timed == 0) return;
  const double us = static_cast<double>(slowest_ns) / 1e3 / options_.aggregate;
  total_us_ += us;
  total_cpu_us_ += cpu_us / options_.aggregate;
  times_us_.push_back(us);
  row_.time_us_min = row_.iterations == 0 ? us : std::min(row_.time_us_min, us);
  row_.time_us_max = std::max(row_.time_us_max, us);
  ++row_.iterations;
  row_.time_us = total_us_ / static_cast<double>(row_.iterations);
  row_.cpu_us = total_cpu_us_ / static_cast<double>(row_.iterations);
  row_.algorithm_bytes_per_second = row_.time_us > 0 ? static_cast<double>(row_.size_bytes) / (row_.time_us * 1e-6) : 0;
  row_.bus_bytes_per_second = row_.algorithm_bytes_per_second * BusFactor(options_.collective, options_.ranks);
}

void Conductor::TakeFinalReports(const std::vector<Report>& reports) {
  late_writes_ = 0;
  for (const Report& report : reports) late_writes_ += report.late_writes;
}

}  // namespace r2cc::perf
