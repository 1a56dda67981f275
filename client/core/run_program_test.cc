#include "client/core/run_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace r2cc::client {
namespace {

using testing::HasSubstr;

TEST(RunSystemProgram, BothOutputsAndTheirEnd) {
  EXPECT_EQ(*RunSystemProgram({"/bin/sh", "-c", "echo out; echo err >&2; exit 3"}, 100), "out\nerr\n");
  const auto end = RunSystemProgram({"/bin/sh", "-c", "i=0; while [ $i -lt 20000 ]; do echo $i; i=$((i+1)); done"}, 12);
  EXPECT_EQ(*end, "19998\n19999\n");
}

TEST(RunSystemProgram, OneThatIsNotThereOrDoesNotEnd) {
  EXPECT_TRUE(absl::IsNotFound(RunSystemProgram({"/nowhere/program"}, 100).status()));
  const auto slow = RunSystemProgram({"/bin/sh", "-c", "echo begun; exec sleep 1000"}, 100, 200);
  EXPECT_THAT(*slow, HasSubstr("ended after 200 ms"));
}

TEST(RunProgram, TheProgramReadsItsInput) {
  const std::string input(100'000, 'x');
  EXPECT_EQ(RunSystemProgram({"wc", "-c"}, 100, 5000, input).value(), "100000\n");
  EXPECT_EQ(RunSystemProgram({"cat"}, 100).value(), "");
}

}  // namespace
}  // namespace r2cc::client
