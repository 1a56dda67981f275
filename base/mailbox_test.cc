#include "base/mailbox.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "base/event_loop.h"
#include "base/fake_executor.h"

namespace r2cc {
namespace {

using testing::ElementsAre;

TEST(QueueMailbox, DeliversInOrderAndCountsDrops) {
  FakeExecutor executor;
  std::vector<int> got;
  QueueMailbox<int> mailbox(&executor, 3, [&](int value) { got.push_back(value); });
  for (int i = 1; i <= 5; ++i) EXPECT_EQ(mailbox.Push(i), i <= 3);
  EXPECT_EQ(mailbox.dropped(), 2u);
  EXPECT_EQ(mailbox.depth(), 3u);
  EXPECT_TRUE(got.empty());
  executor.RunPosted();
  EXPECT_THAT(got, ElementsAre(1, 2, 3));
  EXPECT_TRUE(mailbox.Push(6));
  executor.RunPosted();
  EXPECT_THAT(got, ElementsAre(1, 2, 3, 6));
}

TEST(QueueMailbox, AReaderThatFeedsItselfLetsOthersRun) {
  FakeExecutor executor;
  std::optional<QueueMailbox<int>> mailbox;
  std::vector<int> order;
  mailbox.emplace(&executor, 2, [&](int value) {
    order.push_back(value);
    if (value < 6) mailbox->Push(value + 1);
  });
  mailbox->Push(1);
  executor.Post([&] { order.push_back(100); });
  executor.RunPosted();
  EXPECT_THAT(order, ElementsAre(1, 2, 100, 3, 4, 5, 6));
}

TEST(QueueMailbox, TakesMoveOnlyValues) {
  FakeExecutor executor;
  int got = 0;
  QueueMailbox<std::unique_ptr<int>> mailbox(&executor, 1, [&](std::unique_ptr<int> value) { got = *value; });
  mailbox.Push(std::make_unique<int>(7));
  executor.RunPosted();
  EXPECT_EQ(got, 7);
}

TEST(QueueMailbox, TheReaderMayDestroyTheMailbox) {
  FakeExecutor executor;
  int calls = 0;
  std::optional<QueueMailbox<int>> mailbox;
  mailbox.emplace(&executor, 4, [&](int) {
    ++calls;
    mailbox.reset();
  });
  mailbox->Push(1);
  mailbox->Push(2);
  executor.RunPosted();
  EXPECT_EQ(calls, 1);
}

TEST(QueueMailbox, ReachesALoopFromOtherThreads) {
  constexpr int kThreads = 4;
  constexpr int kPushes = 1000;
  ScopedLoopThread thread("reader");
  int received = 0;
  std::optional<QueueMailbox<int>> queue(std::in_place, &thread.loop(), kThreads * kPushes, [&](int) { ++received; });
  std::vector<std::thread> writers;
  for (int t = 0; t < kThreads; ++t)
    writers.emplace_back([&] {
      for (int i = 0; i < kPushes; ++i) EXPECT_TRUE(queue->Push(i));
    });
  for (std::thread& writer : writers) writer.join();
  // A few are handed over in each turn.
  while (queue->depth() > 0) ASSERT_TRUE(thread.loop().RunAndWait([] {}));
  ASSERT_TRUE(thread.loop().RunAndWait([&] {
    EXPECT_EQ(received, kThreads * kPushes);
    queue.reset();
  }));
}

}  // namespace
}  // namespace r2cc
