#include "base/core/fork_guard.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <thread>
#include <vector>

namespace r2cc {
namespace {

// A forked child that does `body` (async-signal-safe calls only) and ends with its result.
class Child {
 public:
  explicit Child(const std::function<int()>& body) : pid_(fork()) {
    if (pid_ == 0) _exit(body());
  }
  ~Child() { Wait(); }

  int Wait() {
    if (pid_ > 0 && waitpid(pid_, &state_, 0) == pid_) pid_ = -1;
    return WIFEXITED(state_) ? WEXITSTATUS(state_) : -1;
  }

 private:
  pid_t pid_;
  int state_ = 0;
};

bool IsOpen(int fd) { return fcntl(fd, F_GETFD) >= 0; }

class ForkGuardTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(fork_guard::InstallOnce());
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair_), 0);
    ASSERT_EQ(pipe2(hold_, O_CLOEXEC), 0);
  }
  void TearDown() override {
    for (int* fd : {&pair_[0], &pair_[1], &hold_[0], &hold_[1]}) Close(fd);
  }
  void Close(int* fd) {
    if (*fd < 0) return;
    fork_guard::Remove(*fd);
    close(*fd);
    *fd = -1;
  }
  // For a child: sleeps until the parent closes its end of the pipe.
  int Sleep() {
    close(hold_[1]);
    char byte;
    return read(hold_[0], &byte, 1) == 0 ? 0 : 1;
  }

  int pair_[2] = {-1, -1};
  int hold_[2] = {-1, -1};
};

TEST_F(ForkGuardTest, APeerReadsTheEndWhileAForkedChildIsAlive) {
  ASSERT_TRUE(fork_guard::Add(pair_[0]));
  Child child([this] { return Sleep(); });
  Close(&pair_[0]);
  char byte;
  // The child's copy goes when it has run, so the end is waited for.
  EXPECT_EQ(recv(pair_[1], &byte, 1, 0), 0);
  Close(&hold_[1]);
  EXPECT_EQ(child.Wait(), 0);
}

// Without the guard the copy keeps the connection alive: the test above would not pass by chance.
TEST_F(ForkGuardTest, AChildKeepsWhatIsNotGuarded) {
  ASSERT_TRUE(fork_guard::Add(pair_[0]));
  ASSERT_TRUE(fork_guard::Remove(pair_[0]));
  Child child([this] { return Sleep(); });
  Close(&pair_[0]);
  char byte;
  EXPECT_EQ(recv(pair_[1], &byte, 1, MSG_DONTWAIT), -1);
  EXPECT_EQ(errno, EAGAIN);
  Close(&hold_[1]);
  EXPECT_EQ(child.Wait(), 0);
  EXPECT_EQ(recv(pair_[1], &byte, 1, 0), 0);
}

// The parent's connection goes on: the child closes its copy and does not shut it down.
TEST_F(ForkGuardTest, TheParentsConnectionGoesOn) {
  ASSERT_TRUE(fork_guard::Add(pair_[0]));
  Child child([this] { return IsOpen(pair_[0]) ? 1 : 0; });
  EXPECT_EQ(child.Wait(), 0);
  char byte = 'x';
  EXPECT_EQ(send(pair_[0], &byte, 1, MSG_NOSIGNAL), 1);
  EXPECT_EQ(recv(pair_[1], &byte, 1, 0), 1);
}

TEST_F(ForkGuardTest, AChildKnowsThatItIsOne) {
  EXPECT_FALSE(fork_guard::InForkedChild());
  Child child([] { return fork_guard::InForkedChild() ? 0 : 1; });
  EXPECT_EQ(child.Wait(), 0);
  EXPECT_FALSE(fork_guard::InForkedChild());
}

// A number that the child uses again is the child's own: its own children keep it.
TEST_F(ForkGuardTest, AGrandchildKeepsWhatTheChildOpened) {
  ASSERT_TRUE(fork_guard::Add(pair_[0]));
  Child child([this] {
    if (dup2(hold_[0], pair_[0]) < 0) return 1;
    const pid_t pid = fork();
    if (pid == 0) _exit(IsOpen(pair_[0]) ? 0 : 2);
    int state = 0;
    return waitpid(pid, &state, 0) == pid && WIFEXITED(state) ? WEXITSTATUS(state) : 3;
  });
  EXPECT_EQ(child.Wait(), 0);
}

TEST_F(ForkGuardTest, EveryNumberOfAWordAndItsNeighbours) {
  std::vector<int> fds;
  for (int i = 0; i < 3 * 64; ++i) fds.push_back(fcntl(pair_[0], F_DUPFD_CLOEXEC, 64 * (i % 3)));
  for (size_t i = 0; i < fds.size(); i += 2) ASSERT_TRUE(fork_guard::Add(fds[i]));
  Child child([&fds] {
    for (size_t i = 0; i < fds.size(); ++i)
      if (IsOpen(fds[i]) != (i % 2 != 0)) return 1;
    return 0;
  });
  EXPECT_EQ(child.Wait(), 0);
  for (int fd : fds) Close(&fd);
}

TEST_F(ForkGuardTest, ANumberThatIsNoDescriptorIsRefused) {
  for (const int fd : {-1, fork_guard::kFdsMax, 1 << 30}) {
    EXPECT_FALSE(fork_guard::Add(fd));
    EXPECT_FALSE(fork_guard::Remove(fd));
  }
  EXPECT_TRUE(fork_guard::Add(fork_guard::kFdsMax - 1));
  EXPECT_TRUE(fork_guard::Remove(fork_guard::kFdsMax - 1));
}

// Threads that share a word of the set lose nothing of each other.
TEST_F(ForkGuardTest, ThreadsAddAndRemoveAtTheSameTime) {
  std::vector<int> fds;
  for (int i = 0; i < 8; ++i) fds.push_back(fcntl(pair_[0], F_DUPFD_CLOEXEC, 64));
  std::vector<std::thread> threads;
  for (size_t i = 0; i < fds.size(); ++i)
    threads.emplace_back([fd = fds[i], stays = i % 2 == 0] {
      for (int round = 0; round < 2000; ++round) {
        fork_guard::Add(fd);
        fork_guard::Remove(fd);
      }
      if (stays) fork_guard::Add(fd);
    });
  for (std::thread& thread : threads) thread.join();
  Child child([&fds] {
    for (size_t i = 0; i < fds.size(); ++i)
      if (IsOpen(fds[i]) != (i % 2 != 0)) return 1;
    return 0;
  });
  EXPECT_EQ(child.Wait(), 0);
  for (int fd : fds) Close(&fd);
}

}  // namespace
}  // namespace r2cc
