#include "netplugin/transport/os/call_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

namespace r2cc::net {
namespace {

TEST(CallQueue, TheCallerWaitsUntilTheOtherThreadHasDoneIt) {
  std::atomic<int> wakes{0};
  CallQueue queue([&] { ++wakes; });
  std::thread::id done_by;
  std::thread runner([&] {
    while (wakes == 0) std::this_thread::yield();
    queue.Run();
  });
  const std::thread::id runner_id = runner.get_id();
  queue.Do([&] { done_by = std::this_thread::get_id(); });
  EXPECT_EQ(done_by, runner_id);
  runner.join();
}

TEST(CallQueue, AfterTheEndTheCallerDoesItHimself) {
  CallQueue queue([] {});
  queue.End();
  std::thread::id done_by;
  queue.Do([&] { done_by = std::this_thread::get_id(); });
  EXPECT_EQ(done_by, std::this_thread::get_id());
}

TEST(CallQueue, CallsAreDoneInOrder) {
  std::atomic<int> wakes{0};
  CallQueue queue([&] { ++wakes; });
  std::vector<int> done;
  std::vector<std::thread> callers;
  for (int i = 0; i < 5; ++i) {
    callers.emplace_back([&, i] { queue.Do([&, i] { done.push_back(i); }); });
    while (wakes <= i) std::this_thread::yield();
  }
  queue.Run();
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(done, (std::vector<int>{0, 1, 2, 3, 4}));
}

TEST(CallQueue, AnExceptionOfACallReachesItsCallerAndTheOthersAreDone) {
  std::atomic<int> wakes{0};
  CallQueue queue([&] { ++wakes; });
  bool thrown = false, other = false;
  std::thread caller([&] {
    try {
      queue.Do([] { throw std::runtime_error("x"); });
    } catch (const std::runtime_error&) {
      thrown = true;
    }
  });
  while (wakes < 1) std::this_thread::yield();
  std::thread second([&] { queue.Do([&] { other = true; }); });
  while (wakes < 2) std::this_thread::yield();
  queue.Run();
  caller.join();
  second.join();
  EXPECT_TRUE(thrown);
  EXPECT_TRUE(other);
}

TEST(CallQueue, TheEndLeavesNobodyWaiting) {
  std::atomic<int> wakes{0};
  CallQueue queue([&] { ++wakes; });
  bool done = false;
  std::thread caller([&] { queue.Do([&] { done = true; }); });
  while (wakes == 0) std::this_thread::yield();
  queue.End();
  caller.join();
  EXPECT_TRUE(done);
}

TEST(CallQueue, PostedCallsAreMadeByTheThreadAndNotAfterTheEnd) {
  int woken = 0, done = 0;
  CallQueue calls([&] { ++woken; });
  calls.Post([&] {
    ++done;
    // For the next round, not for ever in this one.
    calls.Post([&] { ++done; });
  });
  EXPECT_EQ(done, 0);
  EXPECT_EQ(woken, 1);
  calls.Run();
  EXPECT_EQ(done, 1);
  calls.Run();
  EXPECT_EQ(done, 2);
  calls.Post([&] { ++done; });
  calls.End();
  calls.Post([&] { ++done; });
  calls.Run();
  EXPECT_EQ(done, 2);
}

}  // namespace
}  // namespace r2cc::net
