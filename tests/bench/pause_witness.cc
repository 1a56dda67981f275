// Tells when a processor of this machine ran nothing at all: a thread on each, before which nothing else comes, wakes up every millisecond,
// and prints how long it was late. A guest of a busy host, or one with a share of it, stands still so for many milliseconds, and a figure
// of milliseconds that does not know it is the host's. One line a pause: the processor, and the nanoseconds of CLOCK_MONOTONIC at which it
// began and ended; before them one line with the number of processors. Runs until it is killed or its standard input ends.
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <latch>
#include <thread>
#include <vector>

namespace {

constexpr long kPeriodNs = 1'000'000, kLateNs = 2'000'000;
constexpr long kNanosPerSecond = 1'000'000'000;
constexpr int kPriority = 90;

long Nanos(const timespec& time) { return time.tv_sec * kNanosPerSecond + time.tv_nsec; }

void Watch(int processor, const std::latch* begun) {
  begun->wait();
  timespec due{};
  clock_gettime(CLOCK_MONOTONIC, &due);
  for (;;) {
    const long due_ns = Nanos(due) + kPeriodNs;
    due = {due_ns / kNanosPerSecond, due_ns % kNanosPerSecond};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, nullptr) == EINTR) {
    }
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (Nanos(now) - due_ns < kLateNs) continue;
    std::printf("%d %ld %ld\n", processor, due_ns, Nanos(now));
    std::fflush(stdout);
    due = now;
  }
}

}  // namespace

int main() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  sched_getaffinity(0, sizeof(allowed), &allowed);
  std::latch begun(1);
  std::vector<std::thread> threads;
  for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
    if (!CPU_ISSET(processor, &allowed)) continue;
    threads.emplace_back(Watch, processor, &begun);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(processor, &one);
    const sched_param first{.sched_priority = kPriority};
    int error = pthread_setaffinity_np(threads.back().native_handle(), sizeof(one), &one);
    if (error == 0) error = pthread_setschedparam(threads.back().native_handle(), SCHED_FIFO, &first);
    if (error != 0) {
      std::fprintf(stderr, "pause_witness: processor %d: %s; run it as root\n", processor, std::strerror(error));
      std::_Exit(1);
    }
  }
  std::printf("%zu processors\n", threads.size());
  std::fflush(stdout);
  begun.count_down();
  char byte;
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
  std::_Exit(0);
}
