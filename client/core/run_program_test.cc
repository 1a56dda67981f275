#include "client/core/run_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace r2cc::client {
namespace {

using testing::HasSubstr;

TEST(RunSystemProgram, BothOutputsAndTheirEnd) {
  EXPECT_EQ(*RunSystemProgram({"/bin/sh", "-c", "echo out; echo err >&2; exit 3"}, 100), "out\nerr\n");
  const auto end = RunSystemProgram({"/bin/sh", "-c", "i=0; while [ $i -lt 20000 ]; do echo $i; i=$((i+1)); done"}, 12);
  EXPECT_EQ(*end, "19998\n19999\n");
}

TEST(RunSystemProgram, AProgramThatIsMissingOrDoesNotEnd) {
  EXPECT_TRUE(absl::IsNotFound(RunSystemProgram({"/nowhere/program"}, 100).status()));
  const auto slow = RunSystemProgram({"/bin/sh", "-c", "echo begun; exec sleep 1000"}, 100, 200);
  EXPECT_THAT(*slow, HasSubstr("ended after 200 ms"));
}

TEST(RunSystemProgram, AProgramThatClosesItsOutputAndGoesOnIsEnded) {
  const auto hook = RunSystemProgram({"/bin/sh", "-c", "exec >&- 2>&-; exec sleep 1000"}, 100, 200);
  EXPECT_THAT(*hook, HasSubstr("ended after 200 ms"));
  EXPECT_EQ(*RunSystemProgram({"/bin/sh", "-c", "echo x; exec >&- 2>&-; sleep 0.1"}, 100, 10'000), "x\n");
}

TEST(RunSystemProgram, ItsChildrenEndWithIt) {
  const auto script = RunSystemProgram({"/bin/sh", "-c", "sleep 1000 & echo $!; wait"}, 100, 500);
  const int process = static_cast<int>(syscall(SYS_pidfd_open, std::stoi(*script), 0));
  if (process < 0 && errno != ESRCH) GTEST_SKIP() << "needs pidfd_open: " << std::strerror(errno);
  pollfd ended{process, POLLIN, 0};
  EXPECT_TRUE(process < 0 || poll(&ended, 1, 10'000) == 1) << "it lives: " << *script;
  if (process >= 0) close(process);
}

TEST(RunProgram, TheProgramReadsItsInput) {
  const std::string input(100'000, 'x');
  EXPECT_EQ(RunSystemProgram({"wc", "-c"}, 100, 5000, input).value(), "100000\n");
  EXPECT_EQ(RunSystemProgram({"cat"}, 100).value(), "");
}

}  // namespace
}  // namespace r2cc::client
