#include "base/log_output.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <string>

namespace r2cc {
namespace {

enum class Kind { kPipe, kSocket };

class LogOutputTest : public testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    if (GetParam() == Kind::kPipe) {
      ASSERT_EQ(pipe2(ends_, O_CLOEXEC), 0);
    } else {
      ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_), 0);
    }
  }
  ~LogOutputTest() override {
    for (const int end : ends_) close(end);
  }
  // The bytes that have arrived.
  std::string Read() {
    std::string all;
    char some[65536];
    const int flags = fcntl(ends_[0], F_GETFL);
    fcntl(ends_[0], F_SETFL, flags | O_NONBLOCK);
    for (ssize_t got; (got = read(ends_[0], some, sizeof(some))) > 0;) all.append(some, static_cast<size_t>(got));
    fcntl(ends_[0], F_SETFL, flags);
    return all;
  }

  int ends_[2] = {-1, -1};
};

INSTANTIATE_TEST_SUITE_P(Kinds, LogOutputTest, testing::Values(Kind::kPipe, Kind::kSocket),
                         [](const auto& info) { return info.param == Kind::kPipe ? "Pipe" : "Socket"; });

TEST_P(LogOutputTest, AReaderThatReadsGetsAll) {
  LogOutput output(ends_[1]);
  output.Write("one\n");
  output.Write("two\n");
  EXPECT_EQ(Read(), "one\ntwo\n");
  EXPECT_EQ(output.TakeLost(), 0u);
}

// Before: write() waited for ever.
TEST_P(LogOutputTest, AStuckReaderHoldsUpNobodyAndLinesBeyondTheBoundAreCounted) {
  LogOutput output(ends_[1]);
  constexpr int kLines = 20'000;
  const auto line = [](int i) { return std::to_string(i) + std::string(100, '.') + "\n"; };
  for (int i = 0; i < kLines; ++i) output.Write(line(i));
  EXPECT_EQ(output.TakeLost(), 0u) << "it does not flow yet";
  std::string all;
  for (std::string part; !(part = Read()).empty(); output.Flush()) all += part;
  const uint64_t lost = output.TakeLost();
  EXPECT_GT(lost, 0u);
  EXPECT_EQ(output.TakeLost(), 0u);
  std::string expected;
  for (int i = 0; i < kLines - static_cast<int>(lost); ++i) expected += line(i);
  EXPECT_TRUE(all == expected) << "the first lines are whole and in order";
  EXPECT_GE(all.size(), LogOutput::kWaitingBytesMax - 200);
  EXPECT_LE(all.size(), LogOutput::kWaitingBytesMax + (1 << 20));
  output.Write("again\n");
  EXPECT_EQ(Read(), "again\n");
}

TEST_P(LogOutputTest, AReaderThatIsGoneIsNotWaitedFor) {
  signal(SIGPIPE, SIG_IGN);
  close(ends_[0]);
  ends_[0] = -1;
  LogOutput output(ends_[1]);
  for (int i = 0; i < 10'000; ++i) output.Write(std::string(100, '.') + "\n");
  EXPECT_EQ(output.TakeLost(), 0u);
}

}  // namespace
}  // namespace r2cc
