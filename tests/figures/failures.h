// NICs that fail, by seed: the same seed gives the same failures on every machine.
#ifndef R2CC_TESTS_FIGURES_FAILURES_H_
#define R2CC_TESTS_FIGURES_FAILURES_H_

#include <cstdint>
#include <functional>
#include <vector>

namespace r2cc::figures {

// How many NICs each server has lost.
using Lost = std::vector<int>;

// `count` different NICs of servers x rails, each set of them as likely as any other. Requires that so many are there and that no server
// need lose all its rails; a draw in which one does is drawn again.
Lost LoseNics(int count, int servers, int rails, uint64_t seed);

struct Failure {
  double at_s = 0;
  int server = 0;
  int rail = 0;
};

// Failures at random times within `horizon_s`, `per_nic_s` of them for each NIC and second, by time. A NIC that fails while it is under
// repair fails again.
std::vector<Failure> FailuresOver(double horizon_s, double per_nic_s, int servers, int rails, uint64_t seed);

// The work that a job loses in `horizon_s`, as seconds of a job without faults. A NIC is back `repair_s` after its last failure.
// `slowdown(lost)` is the factor by which an iteration takes longer with so many NICs lost, 1 with none; `hit_s` is what each failure
// costs at once.
double LostSeconds(const std::vector<Failure>& failures, double horizon_s, double repair_s, int servers, double hit_s,
                   const std::function<double(const Lost&)>& slowdown);

}  // namespace r2cc::figures

#endif  // R2CC_TESTS_FIGURES_FAILURES_H_
