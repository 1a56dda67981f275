#include "observe/ring/run_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "observe/ring/ring_rig.h"

namespace r2cc::observe {
namespace {

std::string RunName(const char* of) { return std::string(of) + "." + std::to_string(getpid()); }

TEST(RunMemory, IsFoundByNameAndReadByAnotherProcess) {
  const std::string run = RunName("found");
  RingRig rig(8192, run);
  ASSERT_TRUE(rig.Step());
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::string error;
    const std::vector<FoundRun> found = FindRuns(run, "/proc");
    if (found.size() != 1 || found[0].holder_pid != getppid()) _exit(1);
    const std::unique_ptr<RunMemory> memory = OpenFound(found[0], "/proc", &error);
    if (memory == nullptr || memory->run() != run) _exit(2);
    RingReader reader(memory->control(), memory->ring(), memory->cursors(), static_cast<uint64_t>(getpid()));
    RecordView view;
    if (!reader.Register() || reader.Next(&view) != RingReader::Found::kRecord || RingRig::StepOf(view) != 0) _exit(3);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_NE(rig.memory->cursors()->cursors[0].word, 0U) << "it ended without closing; it is cut off once it is in the way";
  EXPECT_TRUE(FindRuns(run + "x", "/proc").empty());
  struct stat status_of {};
  ASSERT_EQ(fstat(rig.memory->control_fd(), &status_of), 0);
  EXPECT_EQ(status_of.st_mode & 0777, 0600U);
}

TEST(RunMemory, OutlivesItsProducerInAnyHolder) {
  const std::string run = RunName("held");
  int ready[2], go[2];
  ASSERT_EQ(pipe(ready) | pipe(go), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    RingRig rig(8192, run);
    for (int i = 0; i < 5; ++i) rig.Step();
    if (write(ready[1], "x", 1) != 1) _exit(1);
    char byte;
    if (read(go[0], &byte, 1) < 0) _exit(1);
    _exit(0);
  }
  char byte;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  std::string error;
  const std::vector<FoundRun> found = FindRuns(run, "/proc");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].producer_pid, static_cast<uint64_t>(child));
  const std::unique_ptr<RunMemory> held = OpenFound(found[0], "/proc", &error);
  ASSERT_NE(held, nullptr) << error;
  kill(child, SIGKILL);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  const std::vector<FoundRun> again = FindRuns(run, "/proc");
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].holder_pid, getpid());
  RingReader reader(held->control(), held->ring(), nullptr, 0);
  RecordView view;
  for (uint64_t i = 0; i < 5; ++i) {
    ASSERT_EQ(reader.Next(&view), RingReader::Found::kRecord);
    EXPECT_EQ(RingRig::StepOf(view), i);
  }
  for (int fd : {ready[0], ready[1], go[0], go[1]}) close(fd);
}

TEST(RunMemory, ReadersCannotWriteIt) {
  const std::string run = RunName("sealed");
  RingRig rig(8192, run);
  const std::string path = "/proc/self/fd/" + std::to_string(rig.memory->control_fd());
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  EXPECT_EQ(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
  EXPECT_NE(ftruncate(fd, 0), 0);
  EXPECT_LT(pwrite(fd, "x", 1, 0), 0);
  close(fd);
}

TEST(RunMemory, OneLineForEachThatIsForeign) {
  std::string error;
  RingRig a(8192, RunName("a")), b(8192, RunName("b"));
  const auto fds = [](const std::string& run) {
    const std::vector<FoundRun> found = FindRuns(run, "/proc");
    EXPECT_EQ(found.size(), 1U);
    return found[0];
  };
  const FoundRun of_a = fds(RunName("a")), of_b = fds(RunName("b"));
  EXPECT_EQ(RunMemory::Open(dup(of_a.control_fd), dup(of_b.ring_fd), -1, &error), nullptr);
  EXPECT_EQ(error, "control, ring and cursors are not of one producer");
  EXPECT_EQ(RunMemory::Open(dup(of_a.ring_fd), dup(of_a.control_fd), -1, &error), nullptr);
  EXPECT_EQ(error, "control has a foreign magic number: not made by libr2cc-observe");
  EXPECT_EQ(RunMemory::Open(open("/dev/null", O_RDONLY), dup(of_a.ring_fd), dup(of_a.cursors_fd), &error), nullptr);
  EXPECT_EQ(error, "control: the descriptor is not a sealed memfd");
  EXPECT_EQ(RunMemory::Open(dup(of_a.control_fd), -1, dup(of_a.cursors_fd), &error), nullptr);
  EXPECT_EQ(error, "ring: the descriptor is not a sealed memfd");
  a.memory->control()->ring_bytes = 64;
  EXPECT_EQ(RunMemory::Open(dup(of_a.control_fd), dup(of_a.ring_fd), -1, &error), nullptr);
  EXPECT_EQ(error, "the ring has 8192 bytes, and its producer says 64");
  EXPECT_EQ(RunMemory::Make("no/name", 0, 8192, &error), nullptr);
  EXPECT_EQ(error, "a run's name has 1 to 64 of letters, digits, '.', '_' and '-'");
  EXPECT_EQ(RunMemory::Make("small", 0, 64, &error), nullptr);
  EXPECT_EQ(error, "the host's ring would have 64 bytes; it has 4096 to 1099511627776");
}

TEST(RunMemory, AMemfdOfThatNameThatIsNoneIsLeftOut) {
  const std::string run = RunName("foreign");
  const int fd = memfd_create(("r2cc-taps:" + run).c_str(), MFD_CLOEXEC);
  ASSERT_GE(fd, 0);
  EXPECT_TRUE(FindRuns(run, "/proc").empty());
  uint64_t words[16] = {kControlMagic, 1, 5};
  ASSERT_EQ(write(fd, words, sizeof(words)), static_cast<ssize_t>(sizeof(words)));
  EXPECT_TRUE(FindRuns(run, "/proc").empty()) << "it has no ring";
  close(fd);
}

}  // namespace
}  // namespace r2cc::observe
