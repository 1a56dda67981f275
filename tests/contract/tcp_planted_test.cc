// As planted_test.cc, of what only processes with movers show.
#include <gtest/gtest.h>

#include <string>

#include "tests/contract/planted_run.h"

namespace r2cc::contract {
namespace {

using net::Planted;

constexpr char kProgram[] = "tests/contract/tcp_planted";
constexpr char kLargeAmongSmall[] = "Tcp/Contract.ExactlyOnceLargeAmongSmall/*";
// Whether a mover is dismissed in mid-call is chance: in two of three runs it is. Each takes half a second, or 20 if something waits for
// bytes that are lost.
constexpr int kRunsMax = 20;

TEST(TcpPlantedTest, AMoverThatIsDismissedUntoldIsCaught) {
  const PlantedRun sound = RunPlanted(Planted::kNothing, kProgram, kLargeAmongSmall);
  ASSERT_EQ(sound.code, 0) << sound.output;
  if (const size_t reason = sound.output.find("needs "); reason != std::string::npos)
    GTEST_SKIP() << sound.output.substr(reason, sound.output.find('\n', reason) - reason);
  ASSERT_NE(sound.output.find("[  PASSED  ] 1 test."), std::string::npos) << sound.output;

  PlantedRun run;
  for (int i = 0; i < kRunsMax && run.code != 1; ++i) {
    run = RunPlanted(Planted::kDismissedUntold, kProgram, kLargeAmongSmall);
    ASSERT_TRUE(run.code == 0 || run.code == 1) << "fallen over: " << run.output;
  }
  EXPECT_EQ(run.code, 1) << "not seen: " << run.output;
}

}  // namespace
}  // namespace r2cc::contract
