#include <gtest/gtest.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace {

// The operation of the futex that a thread waits on; -1: it does not wait on one.
int64_t FutexOperation(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/syscall");
  std::string number, address, operation;
  file >> number >> address >> operation;
  return number == std::to_string(SYS_futex) ? std::stoll(operation, nullptr, 16) : -1;
}

// The operation with which `wait` waits in a thread of its own, until `wake`.
int64_t OperationOf(const std::function<void()>& wait, const std::function<void()>& wake) {
  std::atomic<pid_t> id = 0;
  std::thread waiter([&] {
    id = gettid();
    wait();
  });
  int64_t found = -1;
  for (int look = 0; look < 3000 && found < 0; ++look) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    if (id != 0) found = FutexOperation(id);
  }
  wake();
  waiter.join();
  return found;
}

TEST(AbseilWaits, AWaitWithALimitDoesNotDependOnTheTimeOfDay) {
  absl::Mutex mutex;
  absl::CondVar changed;
  std::atomic<bool> over = false;  // Debian's abseil is not instrumented: the thread sanitizer does not see the lock
  const int64_t operation = OperationOf(
      [&] {
        const absl::MutexLock lock(&mutex);
        while (!over) changed.WaitWithTimeout(&mutex, absl::Hours(1));
      },
      [&] {
        const absl::MutexLock lock(&mutex);
        over = true;
        changed.Signal();
      });
  ASSERT_GE(operation, 0) << "the thread did not wait, or /proc does not say so";
  EXPECT_EQ(operation & FUTEX_CLOCK_REALTIME, 0);
}

// So the test above can see what it looks for.
TEST(AbseilWaits, AWaitUntilATimeOfDayIsSeen) {
  std::atomic<int> word = 0;
  const int64_t operation = OperationOf(
      [&] {
        timespec until{};
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += 3600;
        const int waits = FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME;
        while (word == 0) syscall(SYS_futex, &word, waits, 0, &until, nullptr, FUTEX_BITSET_MATCH_ANY);
      },
      [&] {
        word = 1;
        syscall(SYS_futex, &word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1);
      });
  EXPECT_NE(operation & FUTEX_CLOCK_REALTIME, 0);
}

TEST(AbseilWaits, AWaitEndsByItsLimit) {
  absl::Mutex mutex;
  absl::CondVar changed;
  const absl::MutexLock lock(&mutex);
  const auto begin = std::chrono::steady_clock::now();
  while (!changed.WaitWithTimeout(&mutex, absl::Milliseconds(30))) {
  }
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(29));
  EXPECT_TRUE(changed.WaitWithTimeout(&mutex, absl::ZeroDuration()));
  EXPECT_TRUE(changed.WaitWithDeadline(&mutex, absl::InfinitePast()));
}

TEST(AbseilWaits, EachSignalWakesItsThread) {
  absl::Mutex mutex;
  absl::CondVar changed;
  std::atomic<int> turn = 0;
  // One waits with a limit, and one without. A signal that is lost costs the first its limit, and the other the test's.
  std::thread other([&] {
    for (int i = 0; i < 2000; ++i) {
      const absl::MutexLock lock(&mutex);
      while (turn != 1) changed.Wait(&mutex);
      turn = 0;
      changed.Signal();
    }
  });
  int late = 0;
  for (int i = 0; i < 2000; ++i) {
    const absl::MutexLock lock(&mutex);
    while (turn != 0) late += changed.WaitWithTimeout(&mutex, absl::Seconds(30)) ? 1 : 0;
    turn = 1;
    changed.Signal();
  }
  other.join();
  EXPECT_EQ(late, 0);
}

}  // namespace
