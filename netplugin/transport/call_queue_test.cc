#include "netplugin/transport/call_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

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

}  // namespace
}  // namespace r2cc::net
