#include "health/probe/rdma_path_judge.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace r2cc::health {
namespace {

using enum RdmaPathState;

// What a path is after probes: 'a' answered; 'm' missed while UDP answered; 'u' missed while UDP was silent, too.
RdmaPathState After(const std::string& probes) {
  RdmaPathJudge judge;
  Nanos now = kNanosPerSecond;
  for (const char probe : probes) {
    now += 200 * kNanosPerMs;
    if (probe == 'a') judge.Answered();
    if (probe == 'm') judge.Missed(now, now);
    if (probe == 'u') judge.Missed(now, now - 1);
  }
  return judge.state();
}

TEST(RdmaPathJudge, Table) {
  const struct {
    std::string probes;
    RdmaPathState state;
  } rows[] = {
      {"", kUnknown},
      {"a", kAnswering},
      {"mmmm", kUnknown},
      {"mmmmm", kBroken},          // it never worked: a wrong P_Key is as bad
      {"ammmm", kAnswering},       // fewer than make UDP silent
      {"ammmma", kAnswering},      // ...
      {"ammmmammmm", kAnswering},  // in a row
      {"ammmmm", kBroken},
      {"auuuuuuuu", kAnswering},  // both silent: UDP's verdict
      {"ammuuummm", kBroken},     // UDP's silence clears nothing
      {"mmmmma", kBroken},        // not proved yet
      {"mmmmmaa", kBroken},
      {"mmmmmaaa", kAnswering},
      {"mmmmmaamaa", kBroken},  // in a row
      {"mmmmmaauaa", kBroken},
      {"mmmmmaaammmm", kAnswering},
  };
  for (const auto& row : rows) EXPECT_EQ(After(row.probes), row.state) << row.probes;
}

TEST(RdmaPathJudge, ForgetsAll) {
  RdmaPathJudge judge;
  for (int i = 0; i < kRdmaMisses; ++i) judge.Missed(1, 1);
  judge.Forget();
  EXPECT_EQ(judge.state(), kUnknown);
  judge.Missed(1, 1);
  EXPECT_EQ(judge.state(), kUnknown);
}

TEST(RdmaFault, IsTheNicsWhereMostOfItsPathsAreBroken) {
  const RdmaPathStatus broken_b = {{"b", "r0"}, kBroken}, broken_c = {{"c", "r0"}, kBroken};
  const RdmaPathStatus sound = {{"d", "r0"}, kAnswering}, unknown = {{"e", "r0"}, kUnknown};
  EXPECT_EQ(RdmaFault({}), "");
  EXPECT_EQ(RdmaFault(std::vector{unknown}), "");
  EXPECT_EQ(RdmaFault(std::vector{sound}), "");
  EXPECT_EQ(RdmaFault(std::vector{broken_b, unknown}), "RDMA writes to b/r0 are not answered, UDP probes are");
  EXPECT_EQ(RdmaFault(std::vector{broken_b, sound}), "");
  EXPECT_EQ(RdmaFault(std::vector{broken_b, sound, broken_c}), "RDMA writes to b/r0 and 1 more are not answered, UDP probes are");
}

TEST(NextRdmaStep, Table) {
  const auto step = [](uint32_t own_meets, std::optional<RdmaEnd> peer) { return NextRdmaStep({.number = 5, .meets = own_meets}, peer); };
  const auto end = [](uint32_t number, uint32_t meets) { return RdmaEnd{.number = number, .meets = meets}; };
  EXPECT_EQ(step(0, std::nullopt), RdmaStep::kWait);
  EXPECT_EQ(step(0, end(9, 0)), RdmaStep::kConnect);
  EXPECT_EQ(step(0, end(9, 5)), RdmaStep::kConnect);
  EXPECT_EQ(step(0, end(9, 4)), RdmaStep::kWait);  // it is to be renewed there
  EXPECT_EQ(step(9, std::nullopt), RdmaStep::kRenew);
  EXPECT_EQ(step(9, end(9, 0)), RdmaStep::kWait);
  EXPECT_EQ(step(9, end(9, 5)), RdmaStep::kWrite);
  EXPECT_EQ(step(9, end(9, 4)), RdmaStep::kWait);  // nonsense
  EXPECT_EQ(step(9, end(8, 0)), RdmaStep::kRenew);
  EXPECT_EQ(step(9, end(8, 5)), RdmaStep::kRenew);
}

}  // namespace
}  // namespace r2cc::health
