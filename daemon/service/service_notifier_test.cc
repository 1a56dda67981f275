#include "daemon/service/service_notifier.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/fake_executor.h"
#include "daemon/service/fake_notify_sink.h"

namespace r2cc::daemon {
namespace {

using Lines = std::vector<std::string>;

class ServiceNotifierTest : public testing::Test {
 protected:
  FakeExecutor core_{10 * kNanosPerSecond};
  FakeNotifySink sink_;
  std::string status_ = "well";
};

TEST_F(ServiceNotifierTest, FeedsTheWatchdogOnceItServesAndUntilItEnds) {
  ServiceNotifier notifier(&sink_, &core_, 4 * kNanosPerSecond, [this] { return status_; });
  core_.Advance(10 * kNanosPerSecond);
  EXPECT_EQ(sink_.TakeSent(), Lines{});
  notifier.Ready();
  EXPECT_EQ(sink_.TakeSent(), Lines{"READY=1\nSTATUS=well\nWATCHDOG=1"});
  core_.Advance(4 * kNanosPerSecond);
  EXPECT_EQ(sink_.TakeSent(), Lines(4, "WATCHDOG=1"));
  notifier.Stopping();
  EXPECT_EQ(sink_.TakeSent(), Lines{"STOPPING=1\nSTATUS=ends; the jobs go on"});
  core_.Advance(10 * kNanosPerSecond);
  EXPECT_EQ(sink_.TakeSent(), Lines{});
}

TEST_F(ServiceNotifierTest, AShortWatchdogIsFedFourTimes) {
  ServiceNotifier notifier(&sink_, &core_, kNanosPerSecond, [this] { return status_; });
  notifier.Ready();
  sink_.TakeSent();
  core_.Advance(kNanosPerSecond);
  EXPECT_EQ(sink_.TakeSent().size(), 4u);
}

TEST_F(ServiceNotifierTest, SendsAStatusOnceAndInOneLine) {
  ServiceNotifier notifier(&sink_, &core_, 0, [this] { return status_; });
  notifier.Ready();
  EXPECT_EQ(sink_.TakeSent(), Lines{"READY=1\nSTATUS=well"});
  core_.Advance(5 * kNanosPerSecond);
  EXPECT_EQ(sink_.TakeSent(), Lines{});
  status_ = "rail0 failed\nREADY=1";
  core_.Advance(5 * kNanosPerSecond);
  EXPECT_EQ(sink_.TakeSent(), Lines{"STATUS=rail0 failed READY=1"});
}

TEST_F(ServiceNotifierTest, AMessageThatMustNotBeLostIsSentAgain) {
  ServiceNotifier notifier(&sink_, &core_, 0, [this] { return status_; });
  sink_.takes = false;
  notifier.Ready();
  core_.Advance(3 * kNanosPerSecond);
  sink_.takes = true;
  core_.Advance(2 * kNanosPerSecond);
  EXPECT_EQ(sink_.TakeSent(), Lines{"READY=1\nSTATUS=well"});
}

TEST_F(ServiceNotifierTest, ReloadingBeginsAndEnds) {
  ServiceNotifier notifier(&sink_, &core_, 0, [this] { return status_; });
  notifier.Ready();
  sink_.TakeSent();
  notifier.Reloading();
  EXPECT_EQ(sink_.TakeSent(), Lines{"RELOADING=1\nMONOTONIC_USEC=10000000"});
  status_ = "new peers";
  notifier.Ready();
  EXPECT_EQ(sink_.TakeSent(), Lines{"READY=1\nSTATUS=new peers"});
  core_.Advance(kNanosPerSecond);
  EXPECT_EQ(sink_.TakeSent(), Lines{});
}

TEST(WatchdogTimeTest, IsTheOwnOneOrNone) {
  EXPECT_EQ(WatchdogTime("10000000", "42", 42), 10 * kNanosPerSecond);
  EXPECT_EQ(WatchdogTime("10000000", nullptr, 42), 10 * kNanosPerSecond);
  EXPECT_EQ(WatchdogTime("10000000", "41", 42), 0);
  EXPECT_EQ(WatchdogTime(nullptr, nullptr, 42), 0);
  for (const char* wrong : {"", "x", "-1", "0", "99999999999999999999"}) EXPECT_EQ(WatchdogTime(wrong, nullptr, 42), 0) << wrong;
  EXPECT_EQ(WatchdogTime("9223372036854775807", nullptr, 42), 24 * 3600 * kNanosPerSecond);
}

}  // namespace
}  // namespace r2cc::daemon
