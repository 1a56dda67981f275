#include "netplugin/transport/verbs/spare_queue_pair.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <string>

#include "base/core/verbs/fake_fabric.h"
#include "base/core/verbs/fake_verbs.h"
#include "base/core/verbs/faulty_verbs.h"
#include "netplugin/transport/verbs/fake_control_thread.h"

namespace r2cc::net::verbs {
namespace {

constexpr QueuePairOptions kOptions{.life = 7};

class SpareQueuePairTest : public testing::Test {
 protected:
  SpareQueuePairTest() {
    fabric_.AddDevice(0, "mlx5_0");
    device_ = Open();
  }
  ~SpareQueuePairTest() override { spare_.End(); }
  std::shared_ptr<Device> Open() {
    return Device::Open(&faulty_, {"mlx5_0", "mlx5_core", 1}, std::make_unique<FakeControlThread>(&time_), &error_);
  }

  FakeTimeline time_;
  FakeFabric fabric_{&time_};
  FakeVerbs fake_{&fabric_, 0};
  FaultyVerbs faulty_{&fake_};
  std::string error_;
  std::shared_ptr<Device> device_;
  SpareQueuePair spare_;
};

TEST_F(SpareQueuePairTest, ItsNumberIsNotThatOfTheOneBefore) {
  auto before = std::make_unique<QueuePair>(device_, QueuePairOptions{.life = 6});
  ASSERT_TRUE(before->Create(&error_)) << error_;
  const uint32_t number = before->offer().number;
  spare_.Make(device_, kOptions);
  before = nullptr;
  // The device uses numbers again at once.
  auto next = spare_.Take(device_.get(), 1);
  ASSERT_NE(next, nullptr);
  ASSERT_TRUE(next->Create(&error_)) << error_;
  EXPECT_NE(next->offer().number, number);
  EXPECT_EQ(spare_.Take(device_.get(), 1), nullptr) << "there was one";
}

TEST_F(SpareQueuePairTest, OneIsEnough) {
  spare_.Make(device_, kOptions);
  faulty_.FailCall(Call::kCreateQueuePair, 1, ENOMEM);
  spare_.Make(device_, kOptions);
  EXPECT_EQ(faulty_.injected(), 0u) << "nobody asked for another";
  EXPECT_NE(spare_.Take(device_.get(), 1), nullptr);
}

TEST_F(SpareQueuePairTest, ThatOfAnotherDeviceOrPortIsNotTaken) {
  spare_.Make(device_, kOptions);
  EXPECT_EQ(spare_.Take(device_.get(), 2), nullptr);
  const auto other = Open();
  spare_.Make(device_, kOptions);
  EXPECT_EQ(spare_.Take(other.get(), 1), nullptr);
  spare_.Make(device_, kOptions);
  spare_.Make(other, kOptions);
  EXPECT_NE(spare_.Take(other.get(), 1), nullptr);
}

TEST_F(SpareQueuePairTest, ACallThatFailsOnceIsMadeAgain) {
  faulty_.FailCall(Call::kCreateQueuePair, 1, EAGAIN);
  spare_.Make(device_, kOptions);
  EXPECT_EQ(faulty_.injected(), 1u);
  EXPECT_NE(spare_.Take(device_.get(), 1), nullptr);
}

TEST_F(SpareQueuePairTest, ADeviceThatHasNoneLeftMakesNone) {
  faulty_.FailCall(Call::kCreateQueuePair, 1, ENOMEM, 1);
  spare_.Make(device_, kOptions);
  EXPECT_EQ(spare_.Take(device_.get(), 1), nullptr);
  device_->Gone();
  spare_.Make(device_, kOptions);
  EXPECT_EQ(spare_.Take(device_.get(), 1), nullptr);
}

TEST_F(SpareQueuePairTest, AtTheEndNothingIsLeft) {
  spare_.Make(device_, kOptions);
  spare_.End();
  time_.RunFor(kNanosPerMs);
  spare_.Make(device_, kOptions);
  EXPECT_EQ(spare_.Take(device_.get(), 1), nullptr);
  EXPECT_EQ(fake_.Close(device_->context()), 0);
}

}  // namespace
}  // namespace r2cc::net::verbs
