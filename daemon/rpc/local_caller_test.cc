#include "daemon/rpc/local_caller.h"

#include <grp.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

namespace r2cc::daemon {
namespace {

// A socket to which a child of this process connects.
class LocalCallerTest : public testing::Test {
 protected:
  LocalCallerTest() : path_("/tmp/r2cc-caller." + std::to_string(getpid())), listener_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    unlink(path_.c_str());
    address_.sun_family = AF_UNIX;
    std::strcpy(address_.sun_path, path_.c_str());
    EXPECT_EQ(bind(listener_, reinterpret_cast<const sockaddr*>(&address_), sizeof(address_)), 0);
    EXPECT_EQ(listen(listener_, 1), 0);
    // A child that could not do its part connects to nothing.
    const timeval wait_most{.tv_sec = 10, .tv_usec = 0};
    EXPECT_EQ(setsockopt(listener_, SOL_SOCKET, SO_RCVTIMEO, &wait_most, sizeof(wait_most)), 0);
  }
  ~LocalCallerTest() override {
    close(listener_);
    unlink(path_.c_str());
  }
  // The caller, if the child does `first`; `nested`: in a pid namespace of its own; `ends`: it has ended before it is looked at.
  Caller Of(const std::function<bool()>& first, bool nested, bool ends = false) {
    const pid_t child = fork();
    if (child == 0) {
      if (nested && unshare(CLONE_NEWPID) != 0) _exit(1);
      if (nested && fork() != 0) {
        wait(nullptr);
        _exit(0);
      }
      if (!first()) _exit(1);
      const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
      char byte;
      if (connect(fd, reinterpret_cast<const sockaddr*>(&address_), sizeof(address_)) == 0 && !ends) (void)!read(fd, &byte, 1);
      _exit(0);
    }
    const int fd = accept(listener_, nullptr, nullptr);
    EXPECT_GE(fd, 0) << "the child did not connect";
    if (ends) waitpid(child, nullptr, 0);
    const Caller caller = LocalCaller(fd);
    close(fd);
    if (!ends) waitpid(child, nullptr, 0);
    return caller;
  }

  const std::string path_;
  const int listener_;
  sockaddr_un address_{};
};

TEST_F(LocalCallerTest, IsWhomTheKernelNames) {
  const Caller caller = Of([] { return true; }, false);
  EXPECT_EQ(caller.kind, Caller::Kind::kLocal);
  EXPECT_EQ(caller.uid, geteuid());
  EXPECT_GT(caller.pid, 0);
}

// A directory service has put the operator into hundreds of groups, and the role comes with the last.
TEST_F(LocalCallerTest, HasAllGroupsOfTheUser) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root: sets groups";
  std::vector<gid_t> groups;
  for (gid_t group = 1; group <= 600; ++group) groups.push_back(group);
  const Caller caller = Of([&] { return setgroups(groups.size(), groups.data()) == 0; }, false);
  EXPECT_EQ(caller.groups.size(), 600u);
}

TEST_F(LocalCallerTest, RootOfAContainerIsNotRootHere) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root: makes a pid namespace";
  const gid_t operators = 64750;
  const Caller caller = Of([&] { return setgroups(1, &operators) == 0; }, true);
  EXPECT_EQ(caller.kind, Caller::Kind::kLocal);
  EXPECT_EQ(caller.uid, kOverflowId);
  EXPECT_EQ(caller.gid, kOverflowId);
  EXPECT_TRUE(caller.groups.empty());
}

TEST_F(LocalCallerTest, AContainerThatSharesThePidsIsKnownByItsRootOrItsUsers) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root: makes a mount namespace";
  const Caller other_root = Of(
      [] {
        return unshare(CLONE_NEWNS) == 0 && mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
               mount("none", "/mnt", "tmpfs", 0, nullptr) == 0 && mkdir("/mnt/tmp", 0755) == 0 && mkdir("/mnt/old", 0755) == 0 &&
               mount("/tmp", "/mnt/tmp", nullptr, MS_BIND, nullptr) == 0 && syscall(SYS_pivot_root, "/mnt", "/mnt/old") == 0 &&
               chdir("/") == 0;
      },
      false);
  EXPECT_TRUE(other_root.contained);
  EXPECT_EQ(other_root.uid, kOverflowId);
  const Caller other_users = Of([] { return unshare(CLONE_NEWUSER) == 0; }, false);
  EXPECT_TRUE(other_users.contained);
  const Caller own_mounts = Of([] { return unshare(CLONE_NEWNS) == 0; }, false);
  EXPECT_FALSE(own_mounts.contained) << "a service with PrivateTmp is no container";
  EXPECT_EQ(own_mounts.uid, 0u);
}

// It connects, hands the socket to a child, and ends: what its number means then is not known.
TEST_F(LocalCallerTest, ACallerThatHasEndedIsNobody) {
  const Caller caller = Of([] { return true; }, false, /*ends=*/true);
  EXPECT_TRUE(caller.contained);
  EXPECT_EQ(caller.uid, kOverflowId);
}

// The daemon of the unit: not root, without a capability.
TEST_F(LocalCallerTest, ADaemonWithoutPrivilegesSeesIt) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root: makes a pid namespace, and becomes another user";
  const pid_t container = fork();
  if (container == 0) {
    if (unshare(CLONE_NEWPID) != 0) _exit(1);
    if (fork() == 0) {
      const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
      char byte;
      if (connect(fd, reinterpret_cast<const sockaddr*>(&address_), sizeof(address_)) == 0) (void)!read(fd, &byte, 1);
      _exit(0);
    }
    wait(nullptr);
    _exit(0);
  }
  const pid_t unprivileged = fork();
  if (unprivileged == 0) {
    if (setgroups(0, nullptr) != 0 || setresgid(64750, 64750, 64750) != 0 || setresuid(64750, 64750, 64750) != 0) _exit(3);
    const int fd = accept(listener_, nullptr, nullptr);
    EXPECT_GE(fd, 0) << "the child did not connect";
    _exit(LocalCaller(fd).contained ? 0 : 1);
  }
  int status = 0;
  waitpid(unprivileged, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  waitpid(container, nullptr, 0);
}

}  // namespace
}  // namespace r2cc::daemon
