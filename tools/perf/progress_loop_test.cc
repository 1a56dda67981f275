#include "tools/perf/progress_loop.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tools/perf/fake_net.h"
#include "tools/perf/pattern.h"

namespace r2cc::perf {
namespace {

// One rank of two that talks to itself: its peer's data are its own, so an all_reduce gives twice the input.
struct Loop {
  explicit Loop(const Idle& idle = {}) : progress(&channels, &trace, idle) {
    channels.emplace_back();
    channels[0].sends.push_back(std::make_unique<SendFlow>(&net, &trace, true, 0, 0, 1));
    channels[0].receives.push_back(std::make_unique<ReceiveFlow>(&net, &trace, true, 0, 0, 1));
    channels[0].sends[0]->comm = &pipe;
    channels[0].receives[0]->comm = &pipe;
  }
  Status SendRecv(int64_t count, int times = 1) {
    input.resize(count);
    output.assign(count, -1);
    FillInput(input.data(), count, 0, 2, iteration);
    std::vector<Sequencer> sequencers;
    sequencers.emplace_back(BuildProgram(Collective::kSendRecv, {0, 2, 0, 1}, count), 2);
    return progress.Run(&sequencers, times, input.data(), output.data(), iteration++, count * 4);
  }

  FakeNet net;
  FakeNet::Pipe pipe;
  Trace trace;
  std::vector<Channel> channels;
  ProgressLoop progress;
  uint32_t iteration = 0;
  std::vector<float> input, output;
};

TEST(ProgressLoopTest, MovesEveryElement) {
  Loop loop;
  for (const int64_t count : {0, 1, 1000, 262144, 262145, 5000000}) {
    const Status status = loop.SendRecv(count);
    ASSERT_TRUE(status.ok()) << status.message();
    ASSERT_TRUE(loop.input == loop.output) << count;
  }
  loop.channels[0].receives[0]->CheckAllSlots();
  EXPECT_EQ(loop.channels[0].receives[0]->late_writes(), 0);
}

TEST(ProgressLoopTest, RunsTheSameCollectiveSeveralTimes) {
  Loop loop;
  ASSERT_TRUE(loop.SendRecv(1000000).ok());
  const size_t once = loop.pipe.all.size();
  const Status status = loop.SendRecv(1000000, 3);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(loop.input == loop.output);
  EXPECT_GT(once, 0u);
  EXPECT_EQ(loop.pipe.all.size(), 4 * once);
}

TEST(ProgressLoopTest, AsksAgainWhenIsendGivesNoRequest) {
  Loop loop;
  loop.pipe.refusals = 100;
  const Status status = loop.SendRecv(1000000);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(loop.input == loop.output);
}

TEST(ProgressLoopTest, SlotsArePoisonedAfterUse) {
  Loop loop;
  ASSERT_TRUE(loop.SendRecv(3000000).ok());
  EXPECT_TRUE(GuardIntact(loop.channels[0].sends[0]->memory(), Flow::kMemoryBytes));
  EXPECT_TRUE(GuardIntact(loop.channels[0].receives[0]->memory(), Flow::kMemoryBytes));
}

TEST(ProgressLoopTest, AWriteAfterDoneIsCountedBeforeTheSlotIsPostedAgain) {
  Loop loop;
  ASSERT_TRUE(loop.SendRecv(1000000).ok());
  ReceiveFlow& flow = *loop.channels[0].receives[0];
  static_cast<uint8_t*>(flow.memory())[kFlowSlotBytes + 12345] ^= 1;  // a byte of the second message
  ASSERT_TRUE(loop.SendRecv(3000000).ok());
  EXPECT_EQ(flow.late_writes(), 1);
  EXPECT_TRUE(loop.input == loop.output);
}

TEST(ProgressLoopTest, AWriteBeyondAMessageIsCountedAtTheEnd) {
  Loop loop;
  ASSERT_TRUE(loop.SendRecv(10).ok());
  ReceiveFlow& flow = *loop.channels[0].receives[0];
  static_cast<uint8_t*>(flow.memory())[kFlowSlotBytes - 1] ^= 1;
  ASSERT_TRUE(loop.SendRecv(10).ok());
  EXPECT_EQ(flow.late_writes(), 0);
  flow.CheckAllSlots();
  EXPECT_EQ(flow.late_writes(), 1);
}

TEST(ProgressLoopTest, AnErrorNamesCallResultAndFlow) {
  Loop loop;
  loop.net.fail_test = abi::Result::kRemoteError;
  const Status status = loop.SendRecv(1000);
  EXPECT_NE(status.message().find("test returned ncclRemoteError (6)"), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("rank 1 on channel 0"), std::string::npos) << status.message();
}

TEST(ProgressLoopTest, SilenceEndsAtTheTimeoutAndNamesTheFlow) {
  Idle idle;
  idle.timeout_ns = 50'000'000;
  Loop loop(idle);
  loop.net.deliver = false;
  const Status status = loop.SendRecv(1000);
  EXPECT_NE(status.message().find("nothing completed for 0.1 s (--timeout)"), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("rank 1 on channel 0"), std::string::npos) << status.message();
}

TEST(ProgressLoopTest, CancelEndsIt) {
  Loop loop;
  loop.progress.Cancel();
  EXPECT_EQ(loop.SendRecv(1000).message(), "cancelled");
}

TEST(ProgressLoopTest, TraceHasEveryCompletionAndWhatIsLeftOpen) {
  const std::string prefix = testing::TempDir() + "/trace";
  Idle idle;
  idle.timeout_ns = 50'000'000;
  {
    Loop loop(idle);
    ASSERT_TRUE(loop.trace.Open(prefix, 0).ok());
    ASSERT_TRUE(loop.SendRecv(2 * 262144).ok());
    loop.net.deliver = false;
    ASSERT_FALSE(loop.SendRecv(10).ok());
  }
  std::ifstream file(prefix + ".0.csv");
  std::string line;
  std::getline(file, line);
  EXPECT_EQ(line, "kind,time_ns,rank,flow,bytes,wait_ns");
  std::map<std::string, int> kinds;
  int64_t bytes = 0;
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    std::string kind, time, rank, flow, size, wait;
    std::getline(
        std::getline(std::getline(std::getline(std::getline(std::getline(fields, kind, ','), time, ','), rank, ','), flow, ','), size, ','),
        wait, ',');
    ++kinds[kind];
    if (kind == "recv") bytes += std::stoll(size);
    if (kind == "open") {
      EXPECT_GE(std::stoll(wait), 50'000'000) << line;
      EXPECT_TRUE(flow == "r0.c0.send.r1" || flow == "r0.c0.recv.r1") << line;
    }
    EXPECT_GE(std::stoll(wait), 0) << line;
  }
  EXPECT_EQ(bytes, 2 * 262144 * 4);
  EXPECT_EQ(kinds["send"], kinds["recv"]);
  EXPECT_EQ(kinds["iteration"], 1);
  EXPECT_EQ(kinds["open"], 2);
}

}  // namespace
}  // namespace r2cc::perf
