#include "health/probe/fair_intervals.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace r2cc::health {

std::map<uint32_t, Nanos> FairIntervals(const std::map<uint32_t, size_t>& pairs, Nanos interval_min, double rate_per_s) {
  std::vector<std::pair<size_t, uint32_t>> users;
  for (const auto& [user, count] : pairs)
    if (count > 0) users.emplace_back(count, user);
  std::sort(users.begin(), users.end());
  // The smallest demand is served first; its unused part is the others'.
  std::map<uint32_t, Nanos> intervals;
  double left_per_s = rate_per_s;
  for (size_t i = 0; i < users.size(); ++i) {
    const auto [count, user] = users[i];
    const double wanted_per_s = static_cast<double>(count) / static_cast<double>(interval_min) * kNanosPerSecond;
    const double given_per_s = std::min(wanted_per_s, left_per_s / static_cast<double>(users.size() - i));
    left_per_s -= given_per_s;
    intervals[user] = std::max(interval_min, static_cast<Nanos>(static_cast<double>(count) / given_per_s * kNanosPerSecond));
  }
  return intervals;
}

}  // namespace r2cc::health
