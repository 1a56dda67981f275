// A process that is stopped for as long as somebody looks at it with a debugger: its peers wait, whatever happens to their out-of-band
// connection meanwhile.

#include <gtest/gtest.h>

#include <ostream>

#include "tests/sim/world.h"

namespace r2cc::sim {
namespace {

constexpr Nanos kMs = kNanosPerMs;
constexpr Nanos kSecond = kNanosPerSecond;
// Of a stopped process: the most that its peer takes, with probes of both sessions, a reset, and what was under way.
constexpr size_t kPlaces = 8;
constexpr Nanos kStopped = 600 * kSecond;

struct Case {
  int stopped;     // 0: the sender of most flows; 1: their receiver
  Nanos reset_at;  // since the start
  int ends;        // of the connection that hear of the reset: 1 the sender's, 2 the receiver's, 3 both
};
void PrintTo(const Case& c, std::ostream* out) {
  *out << "process " << c.stopped << ", reset after " << c.reset_at / kSecond << " s at ends " << c.ends;
}

Scenario ScenarioOf(const Case& c) {
  // Calm: no link may be fenced either.
  Scenario scenario{.kind = Class::kCalm, .backlog = kPlaces};
  scenario.processes.assign(2, ProcessOptions{.rails = 2, .eager_bytes = 1024});
  for (int from = 0; from < 2; ++from)
    for (int rail = kOobRail; rail < 2; ++rail) scenario.paths.push_back({{{from, rail}, {1 - from, rail}}, {.delay = 25'000}});
  for (const int sender : {0, 0, 1}) {
    FlowPlan flow{.sender = sender, .receiver = 1 - sender, .rail = 0, .start = kSecond, .send_gap_most = 20 * kMs};
    flow.messages.assign(200, {20'000, 20'000});
    scenario.flows.push_back(flow);
  }
  scenario.faults = {
      {.kind = FaultKind::kStopLong, .at = kSecond + 500 * kMs, .duration = kStopped, .a = c.stopped, .b = 1 - c.stopped},
      {.kind = FaultKind::kOobReset, .at = kSecond + c.reset_at, .a = 0, .b = 1, .degree = c.ends},
  };
  return scenario;
}

class Stopped : public testing::TestWithParam<Case> {};

TEST_P(Stopped, IsWaitedForThoughItsOutOfBandConnectionIsReset) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const Result result = RunScenario(ScenarioOf(GetParam()), seed, false);
    EXPECT_TRUE(result.violations.empty()) << "seed " << seed << ": " << result.violations.front();
    EXPECT_EQ(result.coverage.errors, 0u) << "seed " << seed;
    EXPECT_EQ(result.coverage.messages, 600u) << "seed " << seed;
    EXPECT_GE(result.virtual_time, kStopped) << "seed " << seed << ": nobody was stopped";
  }
}

INSTANTIATE_TEST_SUITE_P(All, Stopped,
                         testing::Values(Case{0, 5 * kSecond, 1}, Case{0, 5 * kSecond, 3}, Case{1, 5 * kSecond, 1}, Case{1, 5 * kSecond, 3},
                                         Case{1, 300 * kSecond, 1}, Case{0, 300 * kSecond, 3}));

}  // namespace
}  // namespace r2cc::sim
