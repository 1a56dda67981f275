#include "daemon/rpc/local_caller.h"

#include <grp.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/socket.h>
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
  }
  ~LocalCallerTest() override {
    close(listener_);
    unlink(path_.c_str());
  }
  // Who calls, if the child does `first`; `nested`: in a pid namespace of its own.
  Caller Of(const std::function<bool()>& first, bool nested) {
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
      if (connect(fd, reinterpret_cast<const sockaddr*>(&address_), sizeof(address_)) == 0) (void)!read(fd, &byte, 1);
      _exit(0);
    }
    const int fd = accept(listener_, nullptr, nullptr);
    const Caller caller = LocalCaller(fd);
    close(fd);
    waitpid(child, nullptr, 0);
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

// A directory service has put the operator into hundreds of groups, and his role comes with the last.
TEST_F(LocalCallerTest, HasAllOfHisGroups) {
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

}  // namespace
}  // namespace r2cc::daemon
