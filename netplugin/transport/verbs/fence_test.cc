#include "netplugin/transport/verbs/fence.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "base/core/verbs/fake_pair.h"
#include "base/core/verbs/faulty_verbs.h"
#include "netplugin/transport/verbs/fake_control_thread.h"

namespace r2cc::net::verbs {
namespace {

using enum FenceStep;
using enum FenceEvent;

constexpr Call kCalls[] = {Call::kError, Call::kPoll, Call::kReset, Call::kDestroyQueuePair};

TEST(FenceTable, IsWholeAndProvesNothingByAStepThatFailed) {
  for (const FenceStep step : {kError, kDrain, kReset, kDestroy, kSecondLine})
    for (const bool sound : {false, true})
      for (const bool reset_waits : {false, true}) {
        EXPECT_EQ(Next(step, kGone, sound, reset_waits).step, kDone);
        if (step == kSecondLine) continue;
        EXPECT_NE(Next(step, kFailed, sound, reset_waits).step, kDone);
        EXPECT_FALSE(Next(step, kFailed, sound, reset_waits).sound);
        EXPECT_EQ(Next(step, kOk, sound, reset_waits).sound, sound);
      }
  EXPECT_EQ(Next(kDrain, kOk, true, true).step, kReset);
  EXPECT_EQ(Next(kDrain, kOk, true, false).step, kDestroy);
  EXPECT_EQ(Next(kDestroy, kOk, true, true).step, kDone);
  EXPECT_EQ(Next(kDestroy, kOk, false, true).step, kSecondLine);
  EXPECT_EQ(Next(kSecondLine, kOk, false, true).step, kDone);
  EXPECT_EQ(Next(kSecondLine, kFailed, false, true).step, kSecondLine);
}

// Writes without end are under way, placement is slow, and the target is fenced by the product's own fence.
class FenceOnFake : public FakePair {
 protected:
  static constexpr uint64_t kReceive = 900;

  void Begin(const std::string& driver) {
    Make({.placement_late_one_in = 4, .placement_late_most = 20 * kNanosPerMs}, driver);
    faulty_ = std::make_unique<FaultyVerbs>(ends_[1].verbs.get());
    control_ = std::make_unique<FakeControlThread>(&time_, [this] { return faulty_->TakeTime(); });
    Receive(1, kReceive);
    Fill(0, std::byte{1});
    for (uint64_t i = 0; i < 8; ++i) ASSERT_EQ(Send(SendKind::kWrite, i, i * 65'536, 65'536), 0);
    time_.RunFor(200'000);
    successors_ = second_lines_ = 0;
    painted_ = false;
  }
  // From the moment when it is proved nothing may be written: the memory is painted then.
  void RunFence(const std::string& driver, Nanos time = 3 * kNanosPerSecond) {
    const Fence::Target target{ends_[1].pair.id, ends_[1].queue, kReceive, true, driver != "rdma_rxe"};
    fence_ = std::make_unique<Fence>(
        faulty_.get(), target, [this] { ++successors_; },
        [this] {
          ++second_lines_;
          return faulty_->Deregister(ends_[1].region.id);
        });
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
  int successors_ = 0, second_lines_ = 0;
  bool painted_ = false;
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
      EXPECT_EQ(successors_, 1);
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

TEST_F(FenceOnFake, WhatIsNotFlushedInTimeProvesNothing) {
  Begin("rdma_rxe");
  fabric_->options.placement_late_one_in = 1;
  fabric_->options.placement_late_most = 10 * kNanosPerSecond;
  time_.RunFor(300'000);
  RunFence("rdma_rxe", 200 * kNanosPerMs);
  EXPECT_EQ(second_lines_, 1);
  EXPECT_EQ(fence_->result(), Fence::Result::kProved);
  EXPECT_GE(took_, kDrainMost);
  EXPECT_TRUE(clean());
}

TEST_F(FenceOnFake, WithoutBothLinesItIsUnprovedUntilTheSecondOneHolds) {
  Begin("mlx5_core");
  faulty_->FailCall(Call::kError, 1, EINVAL);
  faulty_->FailCall(Call::kDeregister, 1, EINVAL, 2);
  RunFence("mlx5_core", 500 * kNanosPerMs);
  EXPECT_EQ(fence_->result(), Fence::Result::kUnproved);
  EXPECT_FALSE(painted_);
  time_.RunFor(4 * kNanosPerSecond);
  EXPECT_EQ(fence_->result(), Fence::Result::kProved);
  EXPECT_EQ(second_lines_, 4);
  EXPECT_TRUE(clean());
  EXPECT_TRUE(control_->idle());
}

TEST_F(FenceOnFake, WithoutAPostedReceiveTheFlushProvesNothing) {
  Begin("mlx5_core");
  fence_ = std::make_unique<Fence>(faulty_.get(), Fence::Target{ends_[1].pair.id, ends_[1].queue, 0, false, true}, nullptr, nullptr);
  for (int i = 0; i < 10; ++i) fence_->Step(time_.now());
  EXPECT_EQ(fence_->result(), Fence::Result::kUnproved);
}

TEST_F(FenceOnFake, AReceiveThatWasUsedIsNotAFlushedOne) {
  Begin("mlx5_core");
  ASSERT_EQ(Send(SendKind::kWriteWithImmediate, 50, 0, 10), 0);
  time_.RunFor(100 * kNanosPerMs);
  RunFence("mlx5_core");
  EXPECT_EQ(second_lines_, 1);
  EXPECT_TRUE(clean());
}

TEST_F(FenceOnFake, ADeviceThatIsGonePlacesNothing) {
  for (const Call call : kCalls) {
    Begin("mlx5_core");
    faulty_->FailCall(call, 1, EIO);
    fabric_->LoseDevice(1, "mlx5_0");
    RunFence("mlx5_core");
    EXPECT_EQ(fence_->result(), Fence::Result::kGone);
    EXPECT_TRUE(clean());
  }
}

}  // namespace
}  // namespace r2cc::net::verbs
