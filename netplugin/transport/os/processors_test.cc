#include "netplugin/transport/os/processors.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <thread>

namespace r2cc::net {
namespace {

cpu_set_t MaskOf(pid_t thread) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  EXPECT_EQ(sched_getaffinity(thread, sizeof(mask), &mask), 0);
  return mask;
}

void KeepOne(cpu_set_t* mask) {
  for (int i = 0, kept = 0; i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(i, mask) && kept++ > 0) CPU_CLR(i, mask);
}

TEST(Processors, AThreadThatWasPinnedHasThoseOfTheMainThreadAgain) {
  const cpu_set_t all = MaskOf(getpid());
  std::thread([&] {
    cpu_set_t one = all;
    KeepOne(&one);
    ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    const Processors processors = Processors::OfMainThread();
    EXPECT_EQ(processors.count(), CPU_COUNT(&all));
    processors.Use();
    const cpu_set_t now = MaskOf(0);
    EXPECT_TRUE(CPU_EQUAL(&now, &all));
  }).join();
}

TEST(Processors, UsesOnlyTheProcessorsOfTheMainThread) {
  const cpu_set_t all = MaskOf(0);
  cpu_set_t one = all;
  KeepOne(&one);
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  const Processors processors = Processors::OfMainThread();
  EXPECT_EQ(processors.count(), 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof(all), &all), 0);
  std::thread([&] {
    processors.Use();
    const cpu_set_t now = MaskOf(0);
    EXPECT_TRUE(CPU_EQUAL(&now, &one));
  }).join();
}

}  // namespace
}  // namespace r2cc::net
