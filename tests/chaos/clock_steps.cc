// Steps the time of day of the process that preloads it: CLOCK_REALTIME is ahead by the nanoseconds (int64_t) in the file that
// R2CC_CHAOS_CLOCK names. A network namespace has no clock of its own, so this gives a node one. CLOCK_MONOTONIC stays as it is.
//
// A kernel ends each wait until a time of day by the stepped clock, also one that has begun before the step. Here such a wait lasts for
// kSliceNs at most and then returns as if it was woken for no reason, which every caller has to expect.

#include <dlfcn.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdlib>
#include <ctime>

namespace {

constexpr int64_t kSecondNs = 1'000'000'000;
constexpr int64_t kSliceNs = 20'000'000;
// A condition variable does not name the clock of its waits. A time of day is later than this (2001), and no machine is up for so long.
constexpr time_t kLeastTimeOfDayS = 1'000'000'000;

// What would have been called without this file. No static variable with a guard: two threads that come first at once would wait for each
// other by syscall(), which is replaced here, too.
template <typename Function>
Function Next(std::atomic<Function>& found, const char* name) {
  Function next = found.load(std::memory_order_relaxed);
  if (next == nullptr) found.store(next = reinterpret_cast<Function>(dlsym(RTLD_NEXT, name)), std::memory_order_relaxed);
  return next;
}

std::atomic<int (*)(clockid_t, timespec*)> next_clock_gettime;
std::atomic<int (*)(pthread_cond_t*, pthread_mutex_t*, const timespec*)> next_timedwait;
std::atomic<int (*)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*)> next_clockwait;
std::atomic<int (*)(sem_t*, const timespec*)> next_sem_timedwait;
std::atomic<long (*)(long, ...)> next_syscall;

const std::atomic<int64_t>* MapOffset() {
  static constexpr std::atomic<int64_t> kNone{0};
  const char* path = std::getenv("R2CC_CHAOS_CLOCK");
  const int file = path == nullptr ? -1 : open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return &kNone;
  void* mapped = mmap(nullptr, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
  close(file);
  return mapped == MAP_FAILED ? &kNone : static_cast<const std::atomic<int64_t>*>(mapped);
}

std::atomic<const std::atomic<int64_t>*> offset_file;

int64_t OffsetNs() {
  const std::atomic<int64_t>* offset = offset_file.load(std::memory_order_relaxed);
  if (offset == nullptr) offset_file.store(offset = MapOffset(), std::memory_order_relaxed);
  return offset->load(std::memory_order_relaxed);
}

int64_t NanosOf(const timespec& time) { return time.tv_sec * kSecondNs + time.tv_nsec; }
timespec TimespecOf(int64_t ns) { return {ns / kSecondNs, ns % kSecondNs}; }

int64_t KernelNowNs() {
  timespec now{};
  Next(next_clock_gettime, "clock_gettime")(CLOCK_REALTIME, &now);
  return NanosOf(now);
}

// The kernel's time of day at which a wait until `until` is looked at again; `over`: `until` has come.
timespec SliceOf(const timespec& until, bool* over) {
  const int64_t now_ns = KernelNowNs();
  const int64_t left_ns = NanosOf(until) - (now_ns + OffsetNs());
  *over = left_ns <= 0;
  return TimespecOf(now_ns + std::clamp<int64_t>(left_ns, 0, kSliceNs));
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const int result = Next(next_clock_gettime, "clock_gettime")(clock, time);
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) *time = TimespecOf(NanosOf(*time) + OffsetNs());
  return result;
}

int gettimeofday(timeval* time, void*) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  *time = {now.tv_sec, now.tv_nsec / 1000};
  return 0;
}

time_t time(time_t* also) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (also != nullptr) *also = now.tv_sec;
  return now.tv_sec;
}

int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex, const timespec* until) {
  const auto next = Next(next_timedwait, "pthread_cond_timedwait");
  if (until->tv_sec < kLeastTimeOfDayS) return next(condition, mutex, until);
  bool over = false;
  const timespec slice = SliceOf(*until, &over);
  const int result = next(condition, mutex, &slice);
  return result == ETIMEDOUT && !over ? 0 : result;
}

int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock, const timespec* until) {
  const auto next = Next(next_clockwait, "pthread_cond_clockwait");
  if (clock != CLOCK_REALTIME) return next(condition, mutex, clock, until);
  bool over = false;
  const timespec slice = SliceOf(*until, &over);
  const int result = next(condition, mutex, clock, &slice);
  return result == ETIMEDOUT && !over ? 0 : result;
}

int sem_timedwait(sem_t* semaphore, const timespec* until) {
  const auto next = Next(next_sem_timedwait, "sem_timedwait");
  for (bool over = false;;) {
    const timespec slice = SliceOf(*until, &over);
    const int result = next(semaphore, &slice);
    if (result == 0 || errno != ETIMEDOUT || over) return result;
  }
}

// abseil waits by it.
long syscall(long number, ...) noexcept {
  va_list list;
  va_start(list, number);
  long argument[6];
  for (long& each : argument) each = va_arg(list, long);
  va_end(list);
  const auto next = Next(next_syscall, "syscall");
  const auto* until = reinterpret_cast<const timespec*>(argument[3]);
  const bool waits = number == SYS_futex && (argument[1] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET;
  if (!waits || (argument[1] & FUTEX_CLOCK_REALTIME) == 0 || until == nullptr)
    return next(number, argument[0], argument[1], argument[2], argument[3], argument[4], argument[5]);
  bool over = false;
  const timespec slice = SliceOf(*until, &over);
  const long result = next(number, argument[0], argument[1], argument[2], &slice, argument[4], argument[5]);
  if (result != 0 && errno == ETIMEDOUT && !over) errno = EINTR;
  return result;
}

}  // extern "C"
