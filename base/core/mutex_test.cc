#include "base/core/mutex.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>

namespace r2cc {
namespace {

constexpr Nanos kLong = 60 * kNanosPerSecond;

TEST(MutexTest, ALockKeepsOthersOutUntilItEnds) {
  Mutex mutex;
  const auto is_free = [&] {
    bool free = false;
    std::thread([&] {
      free = mutex.TryLock();
      if (free) mutex.Unlock();
    }).join();
    return free;
  };
  {
    MutexLock lock(mutex);
    EXPECT_FALSE(is_free());
    lock.Unlock();
    EXPECT_TRUE(is_free());
    lock.Lock();
    EXPECT_FALSE(is_free());
  }
  EXPECT_TRUE(is_free());
  {
    MutexLock lock(mutex);
    lock.Unlock();
  }
  EXPECT_TRUE(is_free()) << "what was given back is not given back again";
}

TEST(CondVarTest, AWaitEndsWithItsConditionAndHoldsTheLock) {
  Mutex mutex;
  CondVar changed;
  int step = 0;
  std::thread other([&] {
    const MutexLock lock(mutex);
    step = 1;
    changed.NotifyAll();
    changed.Wait(mutex, [&] { return step == 2; });
    step = 3;
    changed.NotifyOne();
  });
  {
    const MutexLock lock(mutex);
    while (step != 1) changed.Wait(mutex);
    step = 2;
    changed.NotifyAll();
    EXPECT_TRUE(changed.WaitFor(mutex, kLong, [&] { return step == 3; }));
    EXPECT_FALSE(changed.WaitFor(mutex, kNanosPerMs, [&] { return step == 4; }));
    changed.WaitFor(mutex, kNanosPerMs);
    bool free = true;
    std::thread([&] { free = mutex.TryLock(); }).join();
    EXPECT_FALSE(free);
  }
  other.join();
  EXPECT_TRUE(mutex.TryLock());
  mutex.Unlock();
}

TEST(CondVarTest, ALockStaysItsOwnersIfTheConditionThrows) {
  Mutex mutex;
  CondVar changed;
  {
    const MutexLock lock(mutex);
    EXPECT_THROW(changed.Wait(mutex, [&]() -> bool { throw std::runtime_error("no"); }), std::runtime_error);
    bool free = true;
    std::thread([&] { free = mutex.TryLock(); }).join();
    EXPECT_FALSE(free);
  }
  EXPECT_TRUE(mutex.TryLock());
  mutex.Unlock();
}

}  // namespace
}  // namespace r2cc
