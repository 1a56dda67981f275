#include "netplugin/transport/verbs/control_thread.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "netplugin/transport/verbs/fake_control_thread.h"

namespace r2cc::net::verbs {
namespace {

ControlJob Appends(std::string* out, char what) {
  return [out, what](Nanos) -> std::optional<Nanos> {
    *out += what;
    return std::nullopt;
  };
}

TEST(JobQueue, ClosesBeforeOpensAndNothingEarly) {
  JobQueue queue;
  std::string done;
  queue.Add(JobKind::kOpen, 1, Appends(&done, 'a'));
  queue.Add(JobKind::kClose, 5, Appends(&done, 'b'));
  queue.Add(JobKind::kOpen, 2, Appends(&done, 'c'));
  queue.Add(JobKind::kClose, 9, Appends(&done, 'd'));
  EXPECT_EQ(queue.next(), 1);
  while (auto next = queue.Take(5)) next->second(5);
  EXPECT_EQ(done, "bac");
  EXPECT_EQ(queue.next(), 9);
  EXPECT_FALSE(queue.empty());
}

TEST(FakeControlThread, StepsAreApartAndOthersRunBetween) {
  FakeTimeline time;
  Nanos takes = 0;
  FakeControlThread thread(&time, [&] { return std::exchange(takes, 0); });
  std::vector<Nanos> steps;
  std::string done;
  const Nanos since = time.now();
  thread.Submit(JobKind::kOpen, [&](Nanos now) -> std::optional<Nanos> {
    steps.push_back(now - since);
    if (steps.size() == 3) return std::nullopt;
    takes = kNanosPerMs;
    return 2 * kNanosPerMs;
  });
  thread.Submit(JobKind::kClose, Appends(&done, 'x'));
  time.RunFor(100 * kNanosPerMs);
  EXPECT_EQ(done, "x");
  ASSERT_EQ(steps.size(), 3u);
  for (size_t i = 1; i < steps.size(); ++i) EXPECT_GE(steps[i] - steps[i - 1], 3 * kNanosPerMs);
  EXPECT_TRUE(thread.idle());
}

TEST(RealControlThread, RunsStepsUntilTheJobIsDone) {
  const SteadyClock clock;
  RealControlThread thread(&clock, "r2cc-verbs-test");
  thread.Start();
  std::promise<Nanos> done;
  int steps = 0;
  const Nanos since = clock.Now();
  thread.Submit(JobKind::kOpen, [&](Nanos now) -> std::optional<Nanos> {
    if (++steps < 3) return kNanosPerMs;
    done.set_value(now);
    return std::nullopt;
  });
  EXPECT_GE(done.get_future().get() - since, 2 * kNanosPerMs);
}

TEST(RealControlThread, EndsWithJobsUndone) {
  const SteadyClock clock;
  std::promise<void> running;
  {
    RealControlThread thread(&clock, "r2cc-verbs-test");
    // What comes before the start waits for it.
    thread.Submit(JobKind::kOpen, [&](Nanos) -> std::optional<Nanos> { return 3600 * kNanosPerSecond; });
    thread.Start();
    thread.Submit(JobKind::kOpen, [&](Nanos) -> std::optional<Nanos> {
      running.set_value();
      return std::nullopt;
    });
    running.get_future().get();
    thread.Submit(JobKind::kOpen, [&](Nanos) -> std::optional<Nanos> { return 3600 * kNanosPerSecond; });
  }
}

TEST(RealControlThread, ACloseWaitsForNoOpening) {
  const SteadyClock clock;
  RealControlThread thread(&clock, "r2cc-verbs-test");
  thread.Start();
  std::promise<void> closed;
  std::promise<bool> opened;
  thread.Submit(JobKind::kOpen, [&](Nanos) -> std::optional<Nanos> {
    opened.set_value(closed.get_future().wait_for(std::chrono::seconds(20)) == std::future_status::ready);
    return std::nullopt;
  });
  thread.Submit(JobKind::kClose, [&](Nanos) -> std::optional<Nanos> {
    closed.set_value();
    return std::nullopt;
  });
  EXPECT_TRUE(opened.get_future().get());
}

TEST(JobQueue, APeerThatDidNotAnswerTheLastTimeIsJoinedLast) {
  JobQueue queue;
  std::string done;
  queue.Add(JobKind::kJoinAgain, 1, Appends(&done, 'a'));
  queue.Add(JobKind::kJoin, 2, Appends(&done, 'b'));
  queue.Add(JobKind::kOpen, 3, Appends(&done, 'c'));
  while (auto next = queue.Take(5)) next->second(5);
  EXPECT_EQ(done, "cba");
}

// A host that is silent, and others that are not.
TEST(RealControlThread, JoinsOfSilentHostsKeepNobodyElse) {
  const SteadyClock clock;
  RealControlThread thread(&clock, "r2cc-verbs-test");
  thread.Start();
  std::promise<void> open, joined;
  std::promise<bool> silent;
  thread.Submit(JobKind::kJoinAgain, [&](Nanos) -> std::optional<Nanos> {
    const auto soon = std::chrono::seconds(20);
    silent.set_value(open.get_future().wait_for(soon) == std::future_status::ready &&
                     joined.get_future().wait_for(soon) == std::future_status::ready);
    return std::nullopt;
  });
  thread.Submit(JobKind::kJoin, [&](Nanos) -> std::optional<Nanos> {
    joined.set_value();
    return std::nullopt;
  });
  thread.Submit(JobKind::kOpen, [&](Nanos) -> std::optional<Nanos> {
    open.set_value();
    return std::nullopt;
  });
  EXPECT_TRUE(silent.get_future().get());
}

// As a device does whose last user was that job.
TEST(RealControlThread, EndsInAJobOfItsOwn) {
  const SteadyClock clock;
  for (const JobKind kind : {JobKind::kClose, JobKind::kOpen}) {
    std::promise<void> ended;
    auto thread = std::make_shared<RealControlThread>(&clock, "r2cc-verbs-test");
    thread->Start();
    RealControlThread* const raw = thread.get();
    raw->Submit(kind, [&ended, held = std::move(thread)](Nanos) mutable -> std::optional<Nanos> {
      held->Submit(JobKind::kOpen, [](Nanos) -> std::optional<Nanos> { return 3600 * kNanosPerSecond; });
      held = nullptr;
      ended.set_value();
      return std::nullopt;
    });
    ended.get_future().get();
  }
}

TEST(RealControlThread, FinishesWhatCloses) {
  const SteadyClock clock;
  RealControlThread thread(&clock, "r2cc-verbs-test");
  int steps = 0;
  thread.Submit(JobKind::kOpen, [](Nanos) -> std::optional<Nanos> { return 3600 * kNanosPerSecond; });
  thread.Submit(JobKind::kClose, [&](Nanos) -> std::optional<Nanos> {
    if (++steps < 3) return kNanosPerMs;
    return std::nullopt;
  });
  // Nobody has started it: there is nothing to wait for.
  thread.FinishClosing(3600 * kNanosPerSecond);
  EXPECT_EQ(steps, 0);
  thread.Start();
  thread.FinishClosing(3600 * kNanosPerSecond);
  EXPECT_EQ(steps, 3);
  // What cannot be closed does not keep the process.
  thread.Submit(JobKind::kClose, [](Nanos) -> std::optional<Nanos> { return kNanosPerMs; });
  thread.FinishClosing(10 * kNanosPerMs);
  thread.Stop();
}

}  // namespace
}  // namespace r2cc::net::verbs
