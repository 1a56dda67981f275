#include "netplugin/transport/os/workers.h"

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <atomic>
#include <functional>
#include <thread>

namespace r2cc::net {
namespace {

constexpr Nanos kAwakeFor = 50 * 1000;

struct Counting : Workers::Task {
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

struct WorkersTest : testing::Test {
  std::unique_ptr<Workers> Make(int threads) {
    std::string error;
    auto workers = Workers::Start(threads, kAwakeFor, &error);
    EXPECT_NE(workers, nullptr) << error;
    return workers;
  }
  Workers::Token Add(Workers* workers, size_t place, const UniqueFd& fd, const std::shared_ptr<Counting>& task) {
    return workers->Add(Workers::Way::kReceive, place, fd.get(), task);
  }

  UniqueFd one{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)}, other{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  std::shared_ptr<Counting> task = std::make_shared<Counting>(), second = std::make_shared<Counting>();
};

TEST_F(WorkersTest, ATaskRunsWhenItsSocketIsReadyAndWhenItIsWoken) {
  const auto workers = Make(1);
  const Workers::Token token = Add(workers.get(), 0, one, task);
  eventfd_write(one.get(), 1);
  task->AwaitRuns(1);
  workers->Wake(token);
  task->AwaitRuns(2);
  eventfd_write(one.get(), 1);  // an edge, though nobody has read the first
  task->AwaitRuns(3);
}

TEST_F(WorkersTest, WakesWhileItRunsAreOneRunMore) {
  const auto workers = Make(1);
  const Workers::Token token = Add(workers.get(), 0, one, task);
  task->held = true;
  workers->Wake(token);
  while (task->inside == 0) std::this_thread::yield();
  for (int i = 0; i < 5; ++i) workers->Wake(token);
  task->held = false;
  task->AwaitRuns(2);
  // A second task of the same thread runs after whatever was due.
  const Workers::Token last = Add(workers.get(), 0, other, second);
  workers->Wake(last);
  second->AwaitRuns(1);
  EXPECT_EQ(task->runs, 2);
}

TEST_F(WorkersTest, PlacesAreSharedOutAmongTheThreads) {
  const auto workers = Make(4);
  const Workers::Token a = Add(workers.get(), 0, one, task), b = Add(workers.get(), 3, other, second);
  task->held = true;
  workers->Wake(a);
  workers->Wake(b);
  second->AwaitRuns(1);  // although the first still runs
  task->held = false;
  task->AwaitRuns(1);
  EXPECT_NE(task->thread.load(), second->thread.load());
}

TEST_F(WorkersTest, ArrivedBytesDoNotWaitForASender) {
  const auto workers = Make(2);
  task->held = true;
  workers->Wake(workers->Add(Workers::Way::kSend, 0, one.get(), task));
  while (task->inside == 0) std::this_thread::yield();
  for (size_t place = 0; place < 3; ++place) {
    workers->Wake(Add(workers.get(), place, other, second));
    second->AwaitRuns(static_cast<int>(place) + 1);
  }
  task->held = false;
  task->AwaitRuns(1);
}

TEST_F(WorkersTest, ATaskMayRemoveItselfAndIsNotRunAgain) {
  const auto workers = Make(1);
  Workers::Token token = 0;
  task->on_run = [&] { workers->Remove(token, one.get()); };
  token = Add(workers.get(), 0, one, task);
  const Workers::Token next = Add(workers.get(), 0, other, second);
  workers->Wake(token);
  task->AwaitRuns(1);
  workers->Wake(token);
  eventfd_write(one.get(), 1);
  workers->Wake(next);
  second->AwaitRuns(1);
  EXPECT_EQ(task->runs, 1);
  EXPECT_EQ(task.use_count(), 1) << "nobody keeps it";
}

TEST_F(WorkersTest, ATaskWithoutASocketRunsWhenItIsWoken) {
  const auto workers = Make(1);
  const Workers::Token token = workers->Add(Workers::Way::kReceive, 0, -1, task);
  workers->Wake(token);
  task->AwaitRuns(1);
  workers->Remove(token, -1);
  workers->Wake(Add(workers.get(), 0, other, second));
  second->AwaitRuns(1);  // the worker has let go of the task before
  EXPECT_EQ(task.use_count(), 1);
}

TEST_F(WorkersTest, TheEndWaitsForATaskThatRuns) {
  auto workers = Make(2);
  const Workers::Token token = Add(workers.get(), 1, one, task);
  task->held = true;
  workers->Wake(token);
  while (task->inside == 0) std::this_thread::yield();
  std::thread release([this] { task->held = false; });
  workers.reset();
  EXPECT_EQ(task->runs, 1);
  release.join();
}

}  // namespace
}  // namespace r2cc::net
