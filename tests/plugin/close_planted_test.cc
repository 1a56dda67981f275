// close_test can fail: a plugin whose close does not wait for a worker's call, or leaves a half-sent chunk to it, is seen each time.
#include <gtest/gtest.h>

#include "tests/contract/planted_run.h"

namespace r2cc::plugin_test {
namespace {

using contract::PlantedRun;
using contract::RunPlanted;
using net::Planted;

constexpr char kProgram[] = "tests/plugin/close_planted";

class ClosePlanted : public testing::TestWithParam<const char*> {};

TEST_P(ClosePlanted, ACloseThatDoesNotWaitIsCaught) {
  const PlantedRun sound = RunPlanted(Planted::kNothing, kProgram, GetParam());
  EXPECT_EQ(sound.code, 0) << sound.output;
  EXPECT_NE(sound.output.find("[  PASSED  ] 1 test."), std::string::npos) << sound.output;
  const PlantedRun run = RunPlanted(Planted::kCloseDoesNotWait, kProgram, GetParam());
  EXPECT_EQ(run.code, 1) << "not seen, or fallen over: " << run.output;
}

INSTANTIATE_TEST_SUITE_P(Ends, ClosePlanted,
                         testing::Values("Close.CloseOfAReceiverWaitsForTheKernelsWrite", "Close.CloseOfASenderWaitsForTheKernelsRead"));

}  // namespace
}  // namespace r2cc::plugin_test
