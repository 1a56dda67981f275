#include "tests/figures/failures.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <utility>

#include "base/core/check.h"

namespace r2cc::figures {
namespace {

// The library's distributions differ from one standard library to the next; its generators do not.
class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}

  // In [0, 1), 53 bits.
  double Unit() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }
  int Below(int bound) { return static_cast<int>(Unit() * bound); }
  double Exponential(double mean) { return -std::log1p(-Unit()) * mean; }

 private:
  std::mt19937_64 engine_;
};

}  // namespace

Lost LoseNics(int count, int servers, int rails, uint64_t seed) {
  R2CC_CHECK(count >= 0 && count <= servers * (rails - 1));
  Random random(seed);
  while (true) {
    std::vector<int> nics(static_cast<size_t>(servers) * rails);
    std::iota(nics.begin(), nics.end(), 0);
    Lost lost(servers, 0);
    for (int i = 0; i < count; ++i) {
      std::swap(nics[i], nics[i + random.Below(static_cast<int>(nics.size()) - i)]);
      ++lost[nics[i] / rails];
    }
    if (*std::max_element(lost.begin(), lost.end()) < rails) return lost;
  }
}

std::vector<Failure> FailuresOver(double horizon_s, double per_nic_s, int servers, int rails, uint64_t seed) {
  Random random(seed);
  std::vector<Failure> failures;
  const double mean_s = 1 / (per_nic_s * servers * rails);
  for (double now_s = random.Exponential(mean_s); now_s < horizon_s; now_s += random.Exponential(mean_s)) {
    const int nic = random.Below(servers * rails);
    failures.push_back({.at_s = now_s, .server = nic / rails, .rail = nic % rails});
  }
  return failures;
}

double LostSeconds(const std::vector<Failure>& failures, double horizon_s, double repair_s, int servers, double hit_s,
                   const std::function<double(const Lost&)>& slowdown) {
  using Nic = std::pair<int, int>;
  std::map<Nic, double> repaired_at_s;
  Lost lost(servers, 0);
  double lost_s = 0, now_s = 0;
  // In a slice of time t with slowdown f the job does t / f of work.
  const auto advance = [&](double to_s) {
    const double factor = slowdown(lost);
    R2CC_CHECK(factor >= 1);
    lost_s += (to_s - now_s) * (1 - 1 / factor);
    now_s = to_s;
  };
  const auto repair_until = [&](double to_s) {
    while (!repaired_at_s.empty()) {
      const auto next = std::min_element(repaired_at_s.begin(), repaired_at_s.end(),
                                         [](const auto& left, const auto& right) { return left.second < right.second; });
      if (next->second > to_s) break;
      advance(next->second);
      --lost[next->first.first];
      repaired_at_s.erase(next);
    }
  };
  for (const Failure& failure : failures) {
    repair_until(failure.at_s);
    advance(failure.at_s);
    lost_s += hit_s;
    const bool fresh = repaired_at_s.insert_or_assign(Nic{failure.server, failure.rail}, failure.at_s + repair_s).second;
    if (fresh) ++lost[failure.server];
  }
  repair_until(horizon_s);
  advance(horizon_s);
  return lost_s;
}

}  // namespace r2cc::figures
