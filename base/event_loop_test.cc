#include "base/event_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace r2cc {
namespace {

using testing::ElementsAre;

struct Pipe {
  Pipe() { EXPECT_EQ(pipe(fds), 0); }
  ~Pipe() {
    close(fds[0]);
    close(fds[1]);
  }
  void Fill() { EXPECT_EQ(write(fds[1], "x", 1), 1); }
  int fds[2];
};

TEST(EventLoop, RunsPostedTasksInOrder) {
  EventLoop loop;
  std::vector<int> order;
  for (int i = 0; i < 3; ++i) loop.Post([&order, i] { order.push_back(i); });
  loop.Post([&loop] { loop.Stop(); });
  loop.Run();
  EXPECT_THAT(order, ElementsAre(0, 1, 2));
}

TEST(EventLoop, TimersRunWhenDueAndNotWhenCancelled) {
  EventLoop loop;
  std::vector<int> order;
  const Nanos start = loop.Now();
  Nanos ran_at = 0;
  loop.RunAfter(20 * kNanosPerMs, [&] {
    order.push_back(2);
    ran_at = loop.Now();
    loop.Stop();
  });
  loop.RunAfter(0, [&] { order.push_back(1); });
  const TimerId cancelled = loop.RunAfter(10 * kNanosPerMs, [&] { order.push_back(9); });
  EXPECT_TRUE(loop.Cancel(cancelled));
  EXPECT_FALSE(loop.Cancel(cancelled));
  loop.Run();
  EXPECT_THAT(order, ElementsAre(1, 2));
  EXPECT_GE(ran_at - start, 20 * kNanosPerMs);
}

TEST(EventLoop, AnEarlierTimerThatIsAddedLaterRunsFirst) {
  EventLoop loop;
  bool late_ran = false;
  loop.RunAfter(3600 * kNanosPerSecond, [&] { late_ran = true; });
  loop.Post([&] { loop.RunAfter(kNanosPerMs, [&] { loop.Stop(); }); });
  loop.Run();
  EXPECT_FALSE(late_ran);
}

TEST(EventLoop, HandlersAreCalledUntilRemoved) {
  EventLoop loop;
  Pipe pipe;
  int calls = 0;
  ASSERT_TRUE(loop.AddFd(pipe.fds[0], EPOLLIN,
                         [&](uint32_t events) {
                           EXPECT_TRUE(events & EPOLLIN);
                           if (++calls == 2) {  // level-triggered: called again, as nobody reads
                             loop.RemoveFd(pipe.fds[0]);
                             loop.RunAfter(20 * kNanosPerMs, [&] { loop.Stop(); });
                           }
                         })
                  .ok());
  EXPECT_FALSE(loop.AddFd(pipe.fds[0], EPOLLIN, [](uint32_t) {}).ok());
  pipe.Fill();
  loop.Run();
  EXPECT_EQ(calls, 2);
}

// Both descriptors are ready in one turn; the handler of one removes the other, whose number is then given to a new pipe.
TEST(EventLoop, AnEventThatWasFetchedDoesNotReachARemovedHandler) {
  EventLoop loop;
  auto a = std::make_unique<Pipe>();
  auto b = std::make_unique<Pipe>();
  int first_calls = 0;
  int stale_calls = 0;
  auto handler_for = [&](std::unique_ptr<Pipe>& other) {
    return [&](uint32_t) {
      if (++first_calls > 1) return;
      const int number = other->fds[0];
      loop.RemoveFd(number);
      other = std::make_unique<Pipe>();
      // The old pipe is closed only after the new one was made, so take its number by force.
      ASSERT_EQ(dup2(other->fds[0], number), number);
      ASSERT_TRUE(loop.AddFd(number, EPOLLIN, [&](uint32_t) { ++stale_calls; }).ok());
      loop.RemoveFd(a->fds[0]);
      loop.RemoveFd(b->fds[0]);
      loop.RunAfter(20 * kNanosPerMs, [&loop, number] {
        loop.RemoveFd(number);
        close(number);
        loop.Stop();
      });
    };
  };
  ASSERT_TRUE(loop.AddFd(a->fds[0], EPOLLIN, handler_for(b)).ok());
  ASSERT_TRUE(loop.AddFd(b->fds[0], EPOLLIN, handler_for(a)).ok());
  a->Fill();
  b->Fill();
  loop.Run();
  EXPECT_EQ(first_calls, 1);
  EXPECT_EQ(stale_calls, 0);
}

// The load for a turn of the loop: thousands of tasks, each of which takes a millisecond, and a timer that is due meanwhile.
TEST(EventLoop, ManyTasksHoldUpNoTimer) {
  EventLoop loop;
  const auto work = [&loop] {
    for (const Nanos until = loop.Now() + kNanosPerMs; loop.Now() < until;) continue;
  };
  int done = 0;
  int done_at_timer = -1;
  int turns = 0;
  loop.ObserveTurns([&] { ++turns; });
  for (int i = 0; i < 200; ++i)
    loop.Post([&, i] {
      EXPECT_EQ(done, i) << "in their order";
      work();
      if (++done == 200) loop.Stop();
    });
  loop.RunAfter(0, [&] { done_at_timer = done; });
  loop.Run();
  EXPECT_EQ(done, 200);
  EXPECT_GE(done_at_timer, 0);
  EXPECT_LE(done_at_timer, 20);
  EXPECT_GE(turns, 20);
}

// The same with descriptors, and with timers that are due at once.
TEST(EventLoop, ManyDescriptorsHoldUpNoTimer) {
  EventLoop loop;
  std::vector<std::unique_ptr<Pipe>> pipes;
  int calls = 0;
  int calls_at_timer = -1;
  for (int i = 0; i < 40; ++i) {
    pipes.push_back(std::make_unique<Pipe>());
    pipes.back()->Fill();
    ASSERT_TRUE(loop.AddFd(pipes.back()->fds[0], EPOLLIN,
                           [&, fd = pipes.back()->fds[0]](uint32_t) {
                             for (const Nanos until = loop.Now() + kNanosPerMs; loop.Now() < until;) continue;
                             loop.RemoveFd(fd);
                             if (++calls == 40) loop.RunAfter(0, [&] { loop.Stop(); });
                           })
                    .ok());
  }
  loop.RunAfter(2 * kNanosPerMs, [&] { calls_at_timer = calls; });
  loop.Run();
  EXPECT_EQ(calls, 40);
  EXPECT_GE(calls_at_timer, 0);
  EXPECT_LT(calls_at_timer, 30);
}

TEST(EventLoop, BadDescriptorIsRefused) {
  EventLoop loop;
  EXPECT_FALSE(loop.AddFd(-1, EPOLLIN, [](uint32_t) {}).ok());
  EXPECT_FALSE(loop.ModifyFd(0, EPOLLIN).ok());
  loop.RemoveFd(12345);
}

TEST(EventLoop, TasksLeftAtTheEndAreDroppedUnrun) {
  auto token = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = token;
  bool ran = false;
  EventLoop loop;
  loop.Post([&loop] { loop.Stop(); });
  loop.Post([token, &ran] { ran = true; });
  token.reset();
  loop.Run();
  EXPECT_FALSE(ran);
  EXPECT_TRUE(watch.expired());
  loop.Post([&ran] { ran = true; });
  EXPECT_FALSE(ran);
}

TEST(EventLoop, StopBeforeRunEndsItAtOnce) {
  EventLoop loop;
  loop.Stop();
  loop.Run();
}

TEST(ScopedLoopThread, IsNamedAndBlocksSignals) {
  ScopedLoopThread thread("health-and-more-than-15");
  char name[32] = {};
  sigset_t blocked;
  ASSERT_TRUE(thread.loop().RunAndWait([&] {
    EXPECT_TRUE(thread.loop().InLoopThread());
    pthread_getname_np(pthread_self(), name, sizeof(name));
    pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    // Nested: at once, not a dead-lock.
    EXPECT_TRUE(thread.loop().RunAndWait([] {}));
  }));
  EXPECT_FALSE(thread.loop().InLoopThread());
  EXPECT_STREQ(name, "health-and-more");
  EXPECT_TRUE(sigismember(&blocked, SIGTERM));
  sigset_t own;
  pthread_sigmask(SIG_SETMASK, nullptr, &own);
  EXPECT_FALSE(sigismember(&own, SIGTERM));
}

TEST(EventLoop, RunAndWaitEndsWithTheLoop) {
  EventLoop loop;
  std::atomic<bool> started = false;
  bool result = true;
  std::thread waiter([&] {
    started = true;
    result = loop.RunAndWait([] {});
  });
  while (!started) std::this_thread::yield();
  loop.Stop();
  loop.Run();  // whether the task was posted before or after the end, it is not run
  waiter.join();
  EXPECT_FALSE(result);
}

TEST(EventLoop, PostsOfManyThreadsAllRun) {
  constexpr int kThreads = 4;
  constexpr int kPosts = 2000;
  int sum = 0;  // touched by the loop alone
  {
    ScopedLoopThread thread("sum");
    std::vector<std::thread> posters;
    for (int t = 0; t < kThreads; ++t)
      posters.emplace_back([&] {
        for (int i = 0; i < kPosts; ++i) thread.loop().Post([&sum] { ++sum; });
      });
    for (std::thread& poster : posters) poster.join();
    ASSERT_TRUE(thread.loop().RunAndWait([] {}));
  }
  EXPECT_EQ(sum, kThreads * kPosts);
}

}  // namespace
}  // namespace r2cc
