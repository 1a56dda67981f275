#include "netplugin/transport/verbs/fence.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "base/core/verbs/fake_pair.h"
#include "netplugin/flow/tuning.h"
#include "netplugin/transport/verbs/fake_control_thread.h"
#include "netplugin/transport/verbs/fake_types.h"

namespace r2cc::net::verbs {
namespace {

using enum FenceStep;
using enum FenceEvent;

constexpr Call kCalls[] = {Call::kError, Call::kPoll, Call::kReset, Call::kDestroyQueuePair};

TEST(FenceTable, IsWholeAndProvesNothingByAStepThatFailed) {
  for (const FenceStep step : {kError, kDrain, kReset, kDestroy, kSecondLine})
    for (const bool sound : {false, true})
      for (const FenceKind kind : {FenceKind{true, true}, FenceKind{false, true}, FenceKind{true, false}}) {
        EXPECT_EQ(Next(step, kGone, sound, kind).step, kDone);
        if (step == kSecondLine) continue;
        EXPECT_NE(Next(step, kFailed, sound, kind).step, kDone);
        EXPECT_FALSE(Next(step, kFailed, sound, kind).sound);
        EXPECT_EQ(Next(step, kOk, sound, kind).sound, sound);
      }
  EXPECT_EQ(Next(kDrain, kOk, true, {}).step, kReset);
  EXPECT_EQ(Next(kDrain, kOk, true, {.reset_waits = false}).step, kDestroy);
  EXPECT_EQ(Next(kDestroy, kOk, true, {}).step, kDone);
  EXPECT_EQ(Next(kDestroy, kOk, false, {}).step, kSecondLine);
  EXPECT_EQ(Next(kSecondLine, kOk, false, {}).step, kDone);
  EXPECT_EQ(Next(kSecondLine, kFailed, false, {}).step, kSecondLine);
  EXPECT_EQ(Next(kDestroy, kOk, false, {.second_line = false}).step, kDone);
  EXPECT_EQ(Next(kDestroy, kFailed, false, {.second_line = false}).step, kDestroy);
}

// Writes without end are under way, placement is slow, and the target is fenced by the product's own fence.
class FenceOnFake : public r2cc::verbs::FakePair {
 protected:
  static constexpr uint64_t kReceive = 900, kOwnReceive = 901;

  void Begin(const std::string& driver) {
    Make({.placement_late_one_in = 4, .placement_late_most = 20 * kNanosPerMs}, driver);
    faulty_ = std::make_unique<FaultyVerbs>(ends_[1].verbs.get());
    control_ = std::make_unique<FakeControlThread>(&time_, [this] { return faulty_->TakeTime(); });
    Receive(1, kReceive);
    Fill(0, std::byte{1});
    for (uint64_t i = 0; i < 8; ++i) ASSERT_EQ(Send(SendKind::kWrite, i, i * 65'536, 65'536), 0);
    time_.RunFor(200'000);
    second_lines_ = 0;
    painted_ = false;
    lost_ = false;
  }
  Fence::Target TargetOf(const std::string& driver) const {
    return {ends_[1].pair.id, ends_[1].queue, kOwnReceive, kReceive, driver != "rdma_rxe"};
  }
  // As the device's are.
  Fence::Calls Calls() {
    Fence::Calls calls;
    calls.answers = [this] {
      DeviceLimits limits;
      return faulty_->QueryDevice(ends_[1].context, &limits) == 0;
    };
    calls.gone = [this, answers = calls.answers] { return lost_ && !answers(); };
    calls.second_line = [this] {
      ++second_lines_;
      return faulty_->Deregister(ends_[1].region.id);
    };
    return calls;
  }
  // From the moment when it is proved nothing may be written: the memory is painted then.
  void RunFence(const std::string& driver, Nanos time = 3 * kNanosPerSecond) {
    fence_ = std::make_unique<Fence>(faulty_.get(), TargetOf(driver), Calls());
    control_->Submit(JobKind::kClose, [this](Nanos now) {
      const auto again = fence_->Step(now);
      const auto result = fence_->result();
      if ((result == Fence::Result::kProved || result == Fence::Result::kGone) && !std::exchange(painted_, true)) {
        Fill(1, std::byte{7});
        took_ = now - began_;
      }
      return again;
    });
    began_ = time_.now();
    time_.RunFor(time);
  }
  bool clean() const { return painted_ && CountOf(1, std::byte{7}) == ends_[1].memory.size(); }

  std::unique_ptr<FaultyVerbs> faulty_;
  std::unique_ptr<FakeControlThread> control_;
  std::unique_ptr<Fence> fence_;
  int second_lines_ = 0;
  bool painted_ = false, lost_ = false;
  Nanos began_ = 0, took_ = 0;
};

TEST_F(FenceOnFake, ProvesItselfAndLetsNothingThrough) {
  for (const char* driver : {"mlx5_core", "rdma_rxe"})
    for (uint64_t seed = 1; seed <= 50; ++seed) {
      time_ = FakeTimeline(seed);
      Begin(driver);
      RunFence(driver);
      ASSERT_EQ(fence_->result(), Fence::Result::kProved) << driver << seed;
      ASSERT_TRUE(clean()) << driver << seed;
      EXPECT_EQ(second_lines_, 0);
      EXPECT_TRUE(fence_->destroyed());
      EXPECT_LT(took_, 30 * kNanosPerMs);
      EXPECT_EQ(fabric_->late_placements(), 0);
    }
}

// Each step fails once, and each is slow.
TEST_F(FenceOnFake, AFailedStepIsMadeUpForByTheSecondLine) {
  for (const char* driver : {"mlx5_core", "rdma_rxe"})
    for (const Call call : kCalls) {
      if (call == Call::kReset && driver == std::string("rdma_rxe")) continue;  // it is never called there
      SCOPED_TRACE(std::string(driver) + " " + std::to_string(static_cast<int>(call)));
      Begin(driver);
      faulty_->FailCall(call, 1, EINVAL);
      RunFence(driver);
      EXPECT_EQ(faulty_->injected(), 1u);
      EXPECT_EQ(fence_->result(), Fence::Result::kProved);
      EXPECT_EQ(second_lines_, 1);
      EXPECT_TRUE(fence_->destroyed());
      EXPECT_TRUE(clean());
    }
}

TEST_F(FenceOnFake, ASlowStepIsWaitedFor) {
  for (const Call call : kCalls) {
    SCOPED_TRACE(static_cast<int>(call));
    Begin("mlx5_core");
    faulty_->SlowCall(call, 40 * kNanosPerMs);
    RunFence("mlx5_core");
    EXPECT_GE(faulty_->injected(), 1u);
    EXPECT_EQ(fence_->result(), Fence::Result::kProved);
    EXPECT_TRUE(clean());
  }
}

TEST_F(FenceOnFake, ALateFlushProvesNothing) {
  Begin("rdma_rxe");
  fabric_->options.placement_late_one_in = 1;
  fabric_->options.placement_late_most = 10 * kNanosPerSecond;
  time_.RunFor(300'000);
  RunFence("rdma_rxe", 200 * kNanosPerMs);
  EXPECT_EQ(second_lines_, 1);
  EXPECT_EQ(fence_->result(), Fence::Result::kProved);
  EXPECT_GE(took_, tuning::kDrainMost);
  EXPECT_TRUE(clean());
}

TEST_F(FenceOnFake, WithoutBothLinesItIsUnprovedUntilTheSecondOneHolds) {
  Begin("mlx5_core");
  faulty_->FailCall(Call::kError, 1, EINVAL);
  // The waits double until they are long.
  constexpr int kFailures = 8;
  static_assert((tuning::kFenceSoon << (kFailures - 1)) > tuning::kSlowRetryLeast);
  faulty_->FailCall(Call::kDeregister, 1, EINVAL, kFailures);
  RunFence("mlx5_core", 2 * tuning::kSlowRetryLeast);
  EXPECT_EQ(fence_->result(), Fence::Result::kUnproved);
  EXPECT_FALSE(painted_);
  time_.RunFor(4 * kNanosPerSecond);
  EXPECT_EQ(fence_->result(), Fence::Result::kProved);
  EXPECT_EQ(second_lines_, kFailures + 2);
  EXPECT_TRUE(clean());
  EXPECT_TRUE(control_->idle());
}

// The peer has used all receives before the fence, and nobody has looked at that.
TEST_F(FenceOnFake, ItsOwnReceiveComesBackWhateverThePeerHasUsed) {
  for (const char* driver : {"mlx5_core", "rdma_rxe"}) {
    Begin(driver);
    ASSERT_EQ(Send(SendKind::kWriteWithImmediate, 50, 0, 10), 0);
    time_.RunFor(100 * kNanosPerMs);
    RunFence(driver);
    EXPECT_EQ(second_lines_, 0) << driver;
    EXPECT_LT(took_, 5 * kNanosPerMs);
    EXPECT_TRUE(clean());
  }
}

// It was in the error state already, and all flushes were polled.
TEST_F(FenceOnFake, ItsOwnReceiveComesBackFromAQueuePairThatBroke) {
  for (const char* driver : {"mlx5_core", "rdma_rxe"}) {
    Begin(driver);
    fabric_->BreakQueuePair(1, ends_[1].pair.number, AsyncKind::kQueuePairFatal);
    time_.RunFor(100 * kNanosPerMs);
    ends_[1].Poll();
    AsyncEvent event;
    while (ends_[1].verbs->ReadAsyncEvent(ends_[1].context, &event) == 0) ends_[1].verbs->AckAsyncEvent(ends_[1].context, event);
    RunFence(driver);
    EXPECT_EQ(second_lines_, 0) << driver;
    EXPECT_LT(took_, 5 * kNanosPerMs);
    EXPECT_TRUE(clean());
  }
}

// A peer that sends beyond its credit takes the fence's receive: another one is posted.
TEST_F(FenceOnFake, AnOwnReceiveThatWasUsedIsPostedAgain) {
  Begin("mlx5_core");
  for (uint64_t i = 0; i < 2; ++i) ASSERT_EQ(Send(SendKind::kWriteWithImmediate, 50 + i, 0, 10), 0);
  time_.RunFor(10 * kNanosPerMs);
  Receive(1, kOwnReceive);
  time_.RunFor(10 * kNanosPerMs);
  RunFence("mlx5_core");
  EXPECT_EQ(second_lines_, 0);
  EXPECT_TRUE(clean());
}

TEST_F(FenceOnFake, WithoutItsOwnReceiveTheDrainProvesNothing) {
  Begin("mlx5_core");
  faulty_->FailCall(Call::kPostReceive, 1, ENOMEM);
  RunFence("mlx5_core");
  EXPECT_EQ(second_lines_, 1);
  EXPECT_TRUE(clean());
}

// mlx5 says EIO of half a dozen states of a device that lives.
TEST_F(FenceOnFake, AnErrorCodeIsNoProofThatTheDeviceIsGone) {
  for (const int error : {EIO, ENODEV, EINVAL, EBUSY})
    for (const Call call : kCalls) {
      SCOPED_TRACE(std::to_string(error) + " of " + std::to_string(static_cast<int>(call)));
      Begin("mlx5_core");
      faulty_->FailCall(call, 1, error);
      RunFence("mlx5_core");
      EXPECT_EQ(fence_->result(), Fence::Result::kProved);
      EXPECT_EQ(second_lines_, 1);
      EXPECT_TRUE(clean());
    }
}

TEST_F(FenceOnFake, AQueuePairThatCannotBeEndedWaitsForTheRevocation) {
  Begin("mlx5_core");
  const bool fails = true;
  for (const Call call : {Call::kError, Call::kDestroyQueuePair, Call::kDeregister}) faulty_->FailWhile(call, &fails, EIO);
  RunFence("mlx5_core", 3 * kNanosPerSecond);
  EXPECT_EQ(fence_->result(), Fence::Result::kUnproved);
  EXPECT_FALSE(painted_);
  faulty_->Mend();
  time_.RunFor(2 * kNanosPerSecond);
  EXPECT_EQ(fence_->result(), Fence::Result::kProved);
  EXPECT_TRUE(fence_->destroyed());
  EXPECT_TRUE(clean());
}

// A device in an internal error says success and does nothing. Only its queries fail.
TEST_F(FenceOnFake, SuccessOfADeviceThatAnswersNoQueryIsNoProof) {
  Begin("mlx5_core");
  const bool internal_error = true;
  for (const Call call : {Call::kError, Call::kReset, Call::kDestroyQueuePair, Call::kDeregister})
    faulty_->PretendWhile(call, &internal_error);
  faulty_->FailWhile(Call::kQueryDevice, &internal_error, EIO);
  RunFence("mlx5_core", 3 * kNanosPerSecond);
  EXPECT_EQ(fence_->result(), Fence::Result::kUnproved);
  EXPECT_FALSE(painted_);
  // Its reset ends what it did, and it says so.
  fabric_->LoseDevice(1, "mlx5_0");
  lost_ = true;
  time_.RunFor(2 * kNanosPerSecond);
  EXPECT_EQ(fence_->result(), Fence::Result::kGone);
  EXPECT_TRUE(clean());
  faulty_->Mend();
}

TEST_F(FenceOnFake, ADeviceThatIsGonePlacesNothing) {
  for (const Call call : kCalls) {
    Begin("mlx5_core");
    faulty_->FailCall(call, 1, EIO);
    fabric_->LoseDevice(1, "mlx5_0");
    lost_ = true;
    RunFence("mlx5_core");
    EXPECT_EQ(fence_->result(), Fence::Result::kGone);
    EXPECT_TRUE(clean());
  }
}

// Its calls fail before its event is read.
TEST_F(FenceOnFake, ALostDeviceIsWaitedForUntilItsEvent) {
  Begin("mlx5_core");
  fabric_->LoseDevice(1, "mlx5_0");
  RunFence("mlx5_core", 20 * kNanosPerMs);
  EXPECT_EQ(fence_->result(), Fence::Result::kRunning);
  lost_ = true;
  time_.RunFor(20 * kNanosPerMs);
  EXPECT_EQ(fence_->result(), Fence::Result::kGone);
}

// The initiator's end writes no memory of the job's.
TEST_F(FenceOnFake, WithoutASecondLineADestroyEndsIt) {
  Begin("mlx5_core");
  faulty_->FailCall(Call::kError, 1, EINVAL);
  faulty_->FailCall(Call::kDestroyQueuePair, 1, EINVAL);
  Fence::Calls calls = Calls();
  calls.second_line = nullptr;
  fence_ = std::make_unique<Fence>(faulty_.get(), TargetOf("mlx5_core"), calls);
  for (int i = 0; i < 10 && fence_->Step(time_.now()); ++i) {
  }
  EXPECT_EQ(fence_->result(), Fence::Result::kProved);
  EXPECT_TRUE(fence_->destroyed());
}

}  // namespace
}  // namespace r2cc::net::verbs
