#include "netplugin/transport/tcp/movers.h"

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <atomic>
#include <functional>
#include <thread>

namespace r2cc::net {
namespace {

struct Counting : Movers::Task {
  void Run() override {
    EXPECT_EQ(inside.fetch_add(1), 0) << "one thread at a time";
    thread = std::this_thread::get_id();
    while (held) std::this_thread::yield();
    if (on_run) on_run();
    inside.fetch_sub(1);
    ++runs;
    runs.notify_all();
  }
  // Waits until it has run `count` times in all.
  void AwaitRuns(int count) const {
    for (int now = runs; now < count; now = runs) runs.wait(now);
  }

  std::function<void()> on_run;
  std::atomic<bool> held{false};
  std::atomic<int> inside{0}, runs{0};
  std::atomic<std::thread::id> thread{};
};

struct MoversTest : testing::Test {
  std::unique_ptr<Movers> Make(int threads) {
    std::string error;
    auto movers = Movers::Start(threads, &error);
    EXPECT_NE(movers, nullptr) << error;
    return movers;
  }
  Movers::Token Add(Movers* movers, size_t place, const UniqueFd& fd, const std::shared_ptr<Counting>& task) {
    return movers->Add(Movers::Way::kReceive, place, fd.get(), task);
  }

  UniqueFd one{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)}, other{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  std::shared_ptr<Counting> task = std::make_shared<Counting>(), second = std::make_shared<Counting>();
};

TEST_F(MoversTest, ATaskRunsWhenItsSocketIsReadyAndWhenItIsCalled) {
  const auto movers = Make(1);
  const Movers::Token token = Add(movers.get(), 0, one, task);
  eventfd_write(one.get(), 1);
  task->AwaitRuns(1);
  movers->Call(token);
  task->AwaitRuns(2);
  eventfd_write(one.get(), 1);  // an edge, though nobody has read the first
  task->AwaitRuns(3);
}

TEST_F(MoversTest, CallsWhileItRunsAreOneRunMore) {
  const auto movers = Make(1);
  const Movers::Token token = Add(movers.get(), 0, one, task);
  task->held = true;
  movers->Call(token);
  while (task->inside == 0) std::this_thread::yield();
  for (int i = 0; i < 5; ++i) movers->Call(token);
  task->held = false;
  task->AwaitRuns(2);
  // A second task of the same thread runs after whatever was due.
  const Movers::Token last = Add(movers.get(), 0, other, second);
  movers->Call(last);
  second->AwaitRuns(1);
  EXPECT_EQ(task->runs, 2);
}

TEST_F(MoversTest, PlacesAreSharedOutAmongTheThreads) {
  const auto movers = Make(4);
  const Movers::Token a = Add(movers.get(), 0, one, task), b = Add(movers.get(), 3, other, second);
  task->held = true;
  movers->Call(a);
  movers->Call(b);
  second->AwaitRuns(1);  // although the first still runs
  task->held = false;
  task->AwaitRuns(1);
  EXPECT_NE(task->thread.load(), second->thread.load());
}

TEST_F(MoversTest, WhatHasArrivedDoesNotWaitForASender) {
  const auto movers = Make(2);
  task->held = true;
  movers->Call(movers->Add(Movers::Way::kSend, 0, one.get(), task));
  while (task->inside == 0) std::this_thread::yield();
  for (size_t place = 0; place < 3; ++place) {
    movers->Call(Add(movers.get(), place, other, second));
    second->AwaitRuns(static_cast<int>(place) + 1);
  }
  task->held = false;
  task->AwaitRuns(1);
}

TEST_F(MoversTest, ATaskMayRemoveItselfAndIsNotRunAgain) {
  const auto movers = Make(1);
  Movers::Token token = 0;
  task->on_run = [&] { movers->Remove(token, one.get()); };
  token = Add(movers.get(), 0, one, task);
  const Movers::Token next = Add(movers.get(), 0, other, second);
  movers->Call(token);
  task->AwaitRuns(1);
  movers->Call(token);
  eventfd_write(one.get(), 1);
  movers->Call(next);
  second->AwaitRuns(1);
  EXPECT_EQ(task->runs, 1);
  EXPECT_EQ(task.use_count(), 1) << "nobody keeps it";
}

TEST_F(MoversTest, TheEndWaitsForATaskThatRuns) {
  auto movers = Make(2);
  const Movers::Token token = Add(movers.get(), 1, one, task);
  task->held = true;
  movers->Call(token);
  while (task->inside == 0) std::this_thread::yield();
  std::thread release([this] { task->held = false; });
  movers.reset();
  EXPECT_EQ(task->runs, 1);
  release.join();
}

}  // namespace
}  // namespace r2cc::net
