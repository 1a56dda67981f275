// Makes each wait of abseil with a time limit end by CLOCK_MONOTONIC, in the program that links this file.
//
// abseil 20220623 waits until a time of day. When the clock is set back by an hour, a wait that has begun lasts an hour longer. gRPC's
// timers wait so, and with them every deadline and keepalive: a connection to a peer that stopped was not ended, and a request to it got no
// answer while r2ccctl waited.
// abseil has made the function below weak, so that a platform can replace it. 20230802 and later need no replacement.

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <ctime>

#include "absl/base/config.h"

#if ABSL_LTS_RELEASE_VERSION < 20230802

#include "absl/synchronization/internal/create_thread_identity.h"
#include "absl/synchronization/internal/per_thread_sem.h"
#include "absl/synchronization/internal/waiter.h"

namespace {

using absl::synchronization_internal::Waiter;

// Waiter is the count of the thread's semaphore and nothing else: the kernel waits on it, and Waiter::Post() raises it.
static_assert(ABSL_WAITER_MODE == ABSL_WAITER_MODE_FUTEX && sizeof(Waiter) == sizeof(std::atomic<int32_t>));

constexpr int64_t kSecondNs = 1'000'000'000;

int64_t NowNs(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return now.tv_sec * kSecondNs + now.tv_nsec;
}

// What is left of it. A step of the time of day between the caller's own look at the clock and this one counts as time.
int64_t LeftNs(absl::synchronization_internal::KernelTimeout timeout) {
  const timespec until = timeout.MakeAbsTimespec();
  // Far deadlines come as the last second that there is; no wait lasts a century.
  constexpr int64_t kMostS = 100LL * 365 * 86400;
  const int64_t now_ns = NowNs(CLOCK_REALTIME);
  const int64_t seconds = std::min<int64_t>(until.tv_sec - now_ns / kSecondNs, kMostS);
  return seconds * kSecondNs + until.tv_nsec - now_ns % kSecondNs;
}

bool Take(std::atomic<int32_t>& count) {
  int32_t seen = count.load(std::memory_order_relaxed);
  while (seen != 0) {
    if (count.compare_exchange_weak(seen, seen - 1, std::memory_order_acquire, std::memory_order_relaxed)) return true;
  }
  return false;
}

}  // namespace

// True: a Post() was taken; false: the time is over.
extern "C" bool ABSL_INTERNAL_C_SYMBOL(AbslInternalPerThreadSemWait)(absl::synchronization_internal::KernelTimeout timeout) {
  absl::base_internal::ThreadIdentity* const thread = absl::synchronization_internal::GetOrCreateCurrentThreadIdentity();
  auto& count = *reinterpret_cast<std::atomic<int32_t>*>(Waiter::GetWaiter(thread));
  const int64_t deadline_ns = timeout.has_timeout() ? NowNs(CLOCK_MONOTONIC) + LeftNs(timeout) : 0;
  while (!Take(count)) {
    const int64_t left_ns = timeout.has_timeout() ? deadline_ns - NowNs(CLOCK_MONOTONIC) : 0;
    if (timeout.has_timeout() && left_ns <= 0) return false;
    // Without FUTEX_CLOCK_REALTIME a futex counts its time by CLOCK_MONOTONIC. Why the wait ended does not matter: the count says.
    const timespec left{.tv_sec = left_ns / kSecondNs, .tv_nsec = left_ns % kSecondNs};
    syscall(SYS_futex, &count, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 0, timeout.has_timeout() ? &left : nullptr, nullptr, 0);
  }
  return true;
}

#endif
