// A stopped peer is waited for, and its out-of-band connection is reset meanwhile. With a short queue of connections that are not accepted
// seconds do for minutes; `--long` takes the minutes, with the queue as it is.
#include <cstdio>
#include <string_view>

#include "bazel/processor_seconds.h"
#include "tests/contract/fixture.h"
#include "tests/contract/tcp/lab.h"
#include "tests/contract/tcp/tcp_world.h"

namespace r2cc::contract {
namespace {

bool take_long = false;
constexpr Nanos kShortStop = 12 * kSecond, kShortReset = 4 * kSecond;
constexpr Nanos kLongStop = 180 * kSecond, kLongReset = 140 * kSecond;
constexpr int kShortBacklog = 10;
// A probe of each process at the other, one more after the reset, and the connection that is opened anew.
constexpr int kHandful = 8;

class Stopped : public Contract {
 protected:
  Lab* lab() { return static_cast<TcpWorld*>(world_.get())->lab(); }

  void ExpectWaitedFor(End end) {
    SCOPED_TRACE("stopped: end " + std::to_string(end));
    Make({.deadline = kShortDeadline, .silence = 100 * kMs});
    Start(2);
    flows_.push_back(job_->Open(1, 0));
    ASSERT_TRUE(job_->RunUntilOpen(Patience()));
    ASSERT_TRUE(TrafficMore(8));
    for (const int flow : flows_) job_->Exchange(flow, 4 * kLarge);
    world_->StopProcess(end);
    job_->RunFor(take_long ? kLongReset : kShortReset);
    lab()->ResetOob(1 - end);
    job_->RunFor(take_long ? kLongStop - kLongReset : kShortStop - kShortReset);
    const int waiting = lab()->WaitingOob(end);
    std::printf("end %d: %d connections wait to be accepted\n", end, waiting);
    EXPECT_GE(waiting, 1) << "nobody has asked for it";
    EXPECT_LE(waiting, kHandful);
    world_->ContinueProcess(end);
    ASSERT_TRUE(job_->RunUntilDone(Patience()));
    ExpectAllWell();
    for (const End other : {0, 1}) EXPECT_EQ(Fences(other), 0) << "a stopped process is no fault";
    TearDown();
  }
};

TEST_P(Stopped, IsWaitedForThoughItsOutOfBandConnectionIsReset) {
  Make();
  for (const End end : {0, 1})
    if (!take_long) lab()->LimitBacklog(end, kShortBacklog);
  TearDown();
  for (const End end : {1, 0}) ExpectWaitedFor(end);
}

INSTANTIATE_TEST_SUITE_P(Tcp, Stopped, testing::Values(TcpTransport()), [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace r2cc::contract

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  r2cc::RecordProcessorSeconds();
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) != "--long") {
      std::fprintf(stderr, "unknown flag %s: there is --long\n", argv[i]);
      return 2;
    }
    r2cc::contract::take_long = true;
  }
  return RUN_ALL_TESTS();
}
