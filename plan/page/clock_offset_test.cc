#include "plan/page/clock_offset.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <vector>

#include "plan/page/page.h"
#include "plan/page/ring.h"

namespace r2cc::plan {
namespace {

TEST(ClockOffset, IsParsed) {
  EXPECT_EQ(ParseMonotonicOffset("monotonic      100000         0\nboottime            7         0\n"), 100'000 * kNanosPerSecond);
  EXPECT_EQ(ParseMonotonicOffset("monotonic        -100 500000000\nboottime            0         0\n"), -99'500 * kNanosPerMs);
  for (const char* text : {"", "boottime 7 0\n", "monotonic\n", "monotonic x 0\n", "monotonic 99999999999999 0\n", "monotonic 1 -1\n"})
    EXPECT_EQ(ParseMonotonicOffset(text), 0) << text;
}

// The result of a process in its own time namespace that is `seconds` ahead; -1: there cannot be one.
int InTimeNamespace(int seconds, const std::function<int()>& run) {
  const pid_t outer = fork();
  if (outer == 0) {
    if (unshare(CLONE_NEWTIME) != 0) _exit(100);
    const std::string offsets = "monotonic " + std::to_string(seconds) + " 0\n";
    const int fd = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, offsets.data(), offsets.size()) < 0) _exit(100);
    close(fd);
    // Between unshare() and fork() the offsets are those of the children.
    if (OwnMonotonicOffset() != 0) _exit(99);
    const pid_t inner = fork();
    if (inner == 0) _exit(run());
    int status = 0;
    waitpid(inner, &status, 0);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 98);
  }
  int status = 0;
  waitpid(outer, &status, 0);
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 98;
  return code == 100 ? -1 : code;
}

TEST(ClockOffset, PageAndRingMeanTheSameInAnotherTimeNamespace) {
  std::string error;
  const auto page = PageWriter::Create(&error);
  const auto ring = EvidenceRingReader::Create(&error);
  ASSERT_TRUE(page != nullptr && ring != nullptr) << error;
  const SteadyClock clock;
  Plan plan;
  plan.epoch = {1, 1};
  for (const int seconds : {100'000, -100}) {
    if (clock.Now() + seconds * kNanosPerSecond <= 0) continue;  // the machine has just booted: no such namespace
    plan.epoch.counter += 1;
    ASSERT_TRUE(page->Publish(plan, clock.Now(), &error)) << error;
    const Nanos before = clock.Now();
    const int failed = InTimeNamespace(seconds, [&] {
      const auto reader = PageReader::Open(dup(page->fd()), &error);
      const auto writer = EvidenceRingWriter::Open(dup(ring->fd()), &error);
      if (reader == nullptr || writer == nullptr) return 1;
      if (OwnMonotonicOffset() != seconds * kNanosPerSecond) return 2;
      if (reader->Stale(clock.Now())) return 3;
      if (!reader->Stale(clock.Now() + 3 * kNanosPerSecond)) return 4;
      EvidenceRecord record{};
      record.kind = static_cast<uint32_t>(EvidenceRecordKind::kRailTotals);
      record.time_ns = clock.Now();
      return writer->Put(record) ? 0 : 5;
    });
    if (failed == -1) GTEST_SKIP() << "needs root: a time namespace";
    EXPECT_EQ(failed, 0) << seconds;
    std::vector<EvidenceRecord> records;
    ASSERT_EQ(ring->Take(1, &records), 1) << seconds;
    EXPECT_GE(records[0].time_ns, before);
    EXPECT_LE(records[0].time_ns, clock.Now());
  }
}

}  // namespace
}  // namespace r2cc::plan
