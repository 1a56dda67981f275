// Readers in processes of their own over one producer's ring, for real: they are slow, are stopped, are killed and come back, while steps
// of 0 bytes to 64 KiB go by. No record is torn, and all counts are equal on both sides. --steps=N, --seed=S.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "bazel/processor_seconds.h"
#include "observe/gather/operators.h"
#include "observe/producer/host_producer.h"
#include "observe/ring/ring_reader.h"

namespace r2cc::observe {
namespace {

uint64_t steps = 20'000, seed = 1;
constexpr uint32_t kRowsMax = 8192;
constexpr size_t kReaders = 4;

uint64_t Word(uint64_t step, uint64_t i) { return Mix(step << 20 | i); }

struct Report {
  Counts counts;
  uint64_t cut_off = 0, torn = 0, broken = 0;
};

bool IsWhole(const RecordView& view) {
  const uint8_t* const at = view.bytes.data() + view.slots->taps[0].offset;
  for (uint64_t i = 0; i < view.header.rows; ++i) {
    const uint64_t expected = Word(view.header.step, i);
    if (std::memcmp(at + i * 8, &expected, 8) != 0) return false;
  }
  return true;
}

// In a child: until the producer has ended.
Report ReadAll(const std::string& run, uint64_t own_seed, bool registers) {
  Report report;
  std::string error;
  std::mt19937_64 random(own_seed);
  std::vector<FoundRun> found = FindRuns(run, "/proc");
  if (found.size() != 1) _exit(2);
  const std::unique_ptr<RunMemory> memory = OpenFound(found[0], "/proc", &error);
  if (memory == nullptr) _exit(3);
  RingReader reader(memory->control(), memory->ring(), memory->cursors(), static_cast<uint64_t>(getpid()));
  uint64_t quick = 0;
  for (;;) {
    if (registers && !reader.registered()) reader.Register();
    const bool in_place = reader.registered();
    RecordView view;
    switch (reader.Next(&view)) {
      case RingReader::Found::kRecord: {
        // A slow one is cut off with a record in its hands.
        if (in_place && random() % 400 == 0) poll(nullptr, 0, static_cast<int>(random() % 12));
        const bool whole = IsWhole(view);
        // What was read in place counts if it was not cut off until now; a copy counts in any case.
        if ((!in_place || reader.Release()) && !whole) ++report.torn;
        if (registers && quick-- == 0) {
          quick = random() % 400;
          poll(nullptr, 0, static_cast<int>(random() % 4));
        }
        break;
      }
      case RingReader::Found::kNothing: poll(nullptr, 0, 1); break;
      case RingReader::Found::kBroken: ++report.broken; break;
      case RingReader::Found::kEnd:
        report.counts = reader.counts();
        report.cut_off = reader.times_cut_off();
        return report;
    }
  }
}

class Readers {
 public:
  Readers(const std::string& run, bool some_register) : run_(run), some_register_(some_register) {
    for (size_t i = 0; i < kReaders; ++i) Start(i);
  }
  void Start(size_t i) {
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    const uint64_t own_seed = seed * 1000 + ++started_;
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      const Report report = ReadAll(run_, own_seed, some_register_ && i != 0);
      _exit(write(ends[1], &report, sizeof(report)) == sizeof(report) ? 0 : 1);
    }
    close(ends[1]);
    readers_[i] = {child, ends[0], 0};
  }
  void Stop(size_t i, Nanos until) {
    kill(readers_[i].pid, SIGSTOP);
    readers_[i].stopped_until = until;
  }
  void Continue(Nanos now) {
    for (Reader& reader : readers_)
      if (reader.stopped_until != 0 && now >= reader.stopped_until) {
        reader.stopped_until = 0;
        kill(reader.pid, SIGCONT);
      }
  }
  void Replace(size_t i) {
    kill(readers_[i].pid, SIGKILL);
    waitpid(readers_[i].pid, nullptr, 0);
    close(readers_[i].pipe);
    Start(i);
  }
  Report Join(size_t i) {
    Report report;
    EXPECT_EQ(read(readers_[i].pipe, &report, sizeof(report)), static_cast<ssize_t>(sizeof(report)));
    int status = 0;
    waitpid(readers_[i].pid, &status, 0);
    EXPECT_EQ(status, 0);
    close(readers_[i].pipe);
    return report;
  }

 private:
  struct Reader {
    pid_t pid;
    int pipe;
    Nanos stopped_until;
  };
  std::string run_;
  bool some_register_;
  uint64_t started_ = 0;
  Reader readers_[kReaders] = {};
};

struct Sums {
  Counts counts;
  uint64_t read = 0, missed = 0, wraps = 0, cut_off = 0, kills = 0;
};

void RunAll(bool some_register, Sums* sums) {
  SteadyClock clock;
  std::string error;
  const std::string run = "readers." + std::to_string(getpid());
  const auto producer =
      HostProducer::Open({.run = run, .ring_bytes = 1 << 20, .every = 1, .reader_timeout_ns = 5 * kNanosPerMs}, &clock, &error);
  ASSERT_NE(producer, nullptr) << error;
  Layout layout;
  layout.taps = {{"x", Operator::kCopy, Dtype::kU64, 0, true, {}}};
  layout.rows_most = kRowsMax;
  uint32_t id = 0;
  ASSERT_TRUE(producer->AddLayout(layout, &id, &error)) << error;
  Readers readers(run, some_register);
  std::mt19937_64 random(seed);
  std::vector<uint64_t> words(kRowsMax);
  for (uint64_t step = 0; step < steps; ++step) {
    // Of a large record a copy takes as long as the producer needs to overwrite it.
    const uint64_t rows = some_register ? random() % (uint64_t{2} << random() % 13) : kRowsMax - random() % 64;
    const RowChoice choice{rows};
    if (producer->Begin(id, Phase::kDecode, choice, &error) == HostProducer::Began::kTaken) {
      for (uint64_t i = 0; i < rows; ++i) words[i] = Word(step, i);
      const uint64_t shape[] = {kRowsMax};
      ASSERT_TRUE(producer->Copy(false, 0, {words.data(), shape, {}}, &error)) << error;
      ASSERT_TRUE(producer->Finish(&error)) << error;
    }
    if (step % 64 != 0) continue;
    const Nanos now = clock.Now();
    readers.Continue(now);
    // A step takes what a small model's does: else the ring would be full all the time.
    if (some_register && step % 256 == 0) poll(nullptr, 0, 1);
    if (random() % 40 == 0) {
      readers.Stop(random() % kReaders, now + static_cast<Nanos>(random() % 20) * kNanosPerMs);
    }
    if (random() % 100 == 0) {
      readers.Replace(random() % kReaders);
      ++sums->kills;
    }
  }
  producer->Close();
  readers.Continue(INT64_MAX);
  const Counts& counts = producer->counts();
  EXPECT_EQ(counts.Steps(), steps);
  for (size_t i = 0; i < kReaders; ++i) {
    Report report = readers.Join(i);
    EXPECT_EQ(report.torn, 0U);
    EXPECT_EQ(report.broken, 0U);
    sums->read += report.counts.records;
    sums->missed += report.counts.missed;
    report.counts.records += report.counts.missed;
    report.counts.missed = 0;
    EXPECT_EQ(report.counts, counts);
  }
  sums->counts = counts;
  sums->wraps = producer->memory()->control()->head / producer->memory()->ring().size();
  sums->cut_off = producer->cut_off();
  std::printf("%" PRIu64 " steps, %" PRIu64 " records, %" PRIu64 " dropped; %" PRIu64 " read, %" PRIu64 " missed; %" PRIu64
              " wraps, %" PRIu64 " cut off, %" PRIu64 " kills\n",
              counts.Steps(), counts.records, counts.dropped_host, sums->read, sums->missed, sums->wraps, sums->cut_off, sums->kills);
}

// What never happens is not tested.
TEST(Readers, RegisteredReadersHoldTheWriterUntilTheyStall) {
  Sums sums;
  RunAll(true, &sums);
  EXPECT_GE(sums.counts.dropped_host, steps / 20);
  EXPECT_GE(sums.counts.records, steps / 20);
  EXPECT_GE(sums.wraps, steps >= 1'000'000 ? 100U : 3U);
  EXPECT_GE(sums.cut_off, steps >= 1'000'000 ? 20U : 1U);
  EXPECT_GT(sums.kills, 0U);
}

TEST(Readers, UnregisteredReadersAreOvertakenAndNoticeIt) {
  Sums sums;
  RunAll(false, &sums);
  EXPECT_EQ(sums.counts.dropped_host, 0U);
  EXPECT_GT(sums.missed, steps / 20);
  EXPECT_GT(sums.read, 0U);
  EXPECT_GE(sums.wraps, steps >= 1'000'000 ? 1000U : 20U);
}

// In a child: until it is killed. It says once that 200 steps are done.
void ProduceUntilKilled(const std::string& run, int started) {
  SteadyClock clock;
  std::string error;
  const auto producer = HostProducer::Open({.run = run, .ring_bytes = 1 << 20}, &clock, &error);
  Layout layout;
  layout.taps = {{"x", Operator::kCopy, Dtype::kU64, 0, true, {}}};
  layout.rows_most = 512;
  uint32_t id = 0;
  if (producer == nullptr || !producer->AddLayout(layout, &id, &error)) _exit(1);
  std::vector<uint64_t> words(512);
  const uint64_t shape[] = {512};
  for (uint64_t step = 0;; ++step) {
    const RowChoice choice{Mix(step) % 513};
    for (uint64_t i = 0; i < choice.count; ++i) words[i] = Word(step, i);
    if (producer->Begin(id, Phase::kDecode, choice, &error) != HostProducer::Began::kTaken ||
        !producer->Copy(false, 0, {words.data(), shape, {}}, &error) || !producer->Finish(&error))
      _exit(2);
    if (step == 200 && write(started, "x", 1) != 1) _exit(3);
  }
}

TEST(Readers, HaveWhatAKilledJobLeft) {
  constexpr int kKills = 100;
  std::mt19937_64 random(seed);
  uint64_t unfinished = 0;
  for (int i = 0; i < kKills; ++i) {
    const std::string run = "killed." + std::to_string(getpid()) + "." + std::to_string(i);
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    const pid_t job = fork();
    ASSERT_GE(job, 0);
    if (job == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      ProduceUntilKilled(run, ends[1]);
    }
    close(ends[1]);
    char byte = 0;
    ASSERT_EQ(read(ends[0], &byte, 1), 1);
    close(ends[0]);
    std::string error;
    const std::vector<FoundRun> found = FindRuns(run, "/proc");
    ASSERT_EQ(found.size(), 1U);
    const std::unique_ptr<RunMemory> held = OpenFound(found[0], "/proc", &error);
    ASSERT_NE(held, nullptr) << error;
    const timespec pause{0, static_cast<long>(random() % 2'000'000)};
    ppoll(nullptr, 0, &pause, nullptr);
    kill(job, SIGKILL);
    int status = 0;
    ASSERT_EQ(waitpid(job, &status, 0), job);
    ASSERT_TRUE(WIFSIGNALED(status)) << status;
    RingReader reader(held->control(), held->ring(), held->cursors(), 0);
    reader.AssumeClosed();
    uint64_t whole = 0, last = 0;
    RecordView view;
    RingReader::Found what;
    for (; (what = reader.Next(&view)) == RingReader::Found::kRecord; ++whole) {
      ASSERT_TRUE(IsWhole(view)) << "step " << view.header.step;
      EXPECT_TRUE(whole == 0 || view.header.step == last + 1) << last;
      last = view.header.step;
    }
    ASSERT_EQ(what, RingReader::Found::kEnd) << reader.error();
    EXPECT_GE(whole, 100U);
    EXPECT_LE(view.gap.Steps(), 1U) << "one may be unfinished";
    unfinished += view.gap.Steps();
  }
  std::printf("%d kills, %" PRIu64 " of them between a count and its record\n", kKills, unfinished);
}

}  // namespace
}  // namespace r2cc::observe

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  r2cc::RecordProcessorSeconds();
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument.rfind("--steps=", 0) == 0) r2cc::observe::steps = std::strtoull(argv[i] + 8, nullptr, 10);
    if (argument.rfind("--seed=", 0) == 0) r2cc::observe::seed = std::strtoull(argv[i] + 7, nullptr, 10);
  }
  return RUN_ALL_TESTS();
}
