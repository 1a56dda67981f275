#include "base/stall_guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "base/event_loop.h"
#include "base/fake_executor.h"

namespace r2cc {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class StallGuardTest : public testing::Test {
 protected:
  // Time passes; the loops that are not set to hang turn.
  void Pass(Nanos by, bool core_turns, bool disk_turns = true) {
    for (const Nanos end = own_.Now() + by; own_.Now() < end;) {
      own_.Advance(kStallAskInterval / 4);
      if (core_turns) core_.RunPosted();
      if (disk_turns) disk_.RunPosted();
      own_.RunPosted();
    }
  }

  FakeExecutor own_, core_, disk_;
  std::vector<std::string> reported_;
  StallGuard guard_{&own_,
                    {{"core", &core_, kNanosPerSecond}, {"disk", &disk_, 10 * kNanosPerSecond}},
                    [this](const std::string& name, bool stalled, Nanos lasted) {
                      reported_.push_back(name + (stalled ? " stalls " : " stalled ") + std::to_string(lasted / kNanosPerMs));
                    }};
};

TEST_F(StallGuardTest, LoopsThatTurnAreNotSpokenOf) {
  Pass(60 * kNanosPerSecond, true);
  EXPECT_THAT(reported_, IsEmpty());
}

TEST_F(StallGuardTest, AStallIsReportedOnceWhileItLastsAndOnceWhenItIsOver) {
  Pass(kNanosPerSecond, true);
  Pass(3 * kNanosPerSecond, false);
  EXPECT_THAT(reported_, ElementsAre(testing::StartsWith("core stalls 1")));
  Pass(kNanosPerSecond, true);
  EXPECT_THAT(reported_, ElementsAre(testing::StartsWith("core stalls 1"), testing::StartsWith("core stalled ")));
  Pass(3 * kNanosPerSecond, false);
  EXPECT_EQ(reported_.size(), 3u) << "a second one is reported, too";
}

TEST_F(StallGuardTest, EachLoopHasItsOwnPatience) {
  Pass(9 * kNanosPerSecond, true, false);
  EXPECT_THAT(reported_, IsEmpty()) << "a disk may take its time";
  Pass(2 * kNanosPerSecond, true, false);
  EXPECT_THAT(reported_, ElementsAre(testing::StartsWith("disk stalls 10")));
}

class PostCounter final : public Executor {
 public:
  void Post(Task) override { ++posts; }
  TimerId RunAfter(Nanos, Task) override { return 1; }
  bool Cancel(TimerId) override { return true; }
  Nanos Now() const override { return kNanosPerSecond; }
  int posts = 0;
};

TEST(StallGuard, ALoopThatAnswersAfterTheGuardEndedIsIgnored) {
  FakeExecutor disk;
  PostCounter own;
  {
    const StallGuard guard(&own, {{"disk", &disk, kNanosPerSecond}}, [](const std::string&, bool, Nanos) {});
    disk.RunPosted();
    ASSERT_EQ(own.posts, 1);
  }
  {
    const StallGuard guard(&own, {{"disk", &disk, kNanosPerSecond}}, [](const std::string&, bool, Nanos) {});
  }
  disk.RunPosted();
  EXPECT_EQ(own.posts, 1) << "by then its executor may be gone";
}

// The real thing: a task that blocks a real loop.
TEST(StallGuard, ABlockedLoopIsNoticedFromOutside) {
  ScopedLoopThread core("core"), own("guard");
  absl::Notification stalled, over;
  std::unique_ptr<StallGuard> guard;
  own.loop().RunAndWait([&] {
    guard = std::make_unique<StallGuard>(&own.loop(), std::vector<StallGuard::Watched>{{"core", &core.loop(), kNanosPerSecond / 4}},
                                         [&](const std::string&, bool is_stalled, Nanos) {
                                           if (is_stalled && !stalled.HasBeenNotified()) stalled.Notify();
                                           if (!is_stalled && !over.HasBeenNotified()) over.Notify();
                                         });
  });
  core.loop().Post([&] { stalled.WaitForNotification(); });
  EXPECT_TRUE(over.WaitForNotificationWithTimeout(absl::Seconds(20)));
  own.loop().RunAndWait([&] { guard.reset(); });
}

}  // namespace
}  // namespace r2cc
