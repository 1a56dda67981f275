#include "client/doctor/os_machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

namespace r2cc::client {
namespace {

using testing::HasSubstr;

TEST(OsMachine, TheLoopbackAnswers) {
  OsMachine machine({}, [] { return int64_t{1}; });
  EXPECT_TRUE(machine.TcpAnswers({"127.0.0.1", ""}, "127.0.0.1", 9).ok()) << "refused is an answer";
  EXPECT_FALSE(machine.TcpAccepts("127.0.0.1", 9).ok());
  const auto route = machine.Route("127.0.0.1", "127.0.0.1");
  ASSERT_TRUE(route.ok()) << route.status();
  EXPECT_EQ(*route, "lo");
  const auto route6 = machine.Route("::1", "::1");
  if (route6.ok()) {
    EXPECT_EQ(*route6, "lo");
  } else {
    EXPECT_FALSE(absl::IsUnimplemented(route6.status())) << "a kernel without IPv6 has no way there";
  }
  const absl::Status ping = machine.Ping({"127.0.0.1", ""}, "127.0.0.1", 84);
  EXPECT_TRUE(ping.ok() || absl::IsPermissionDenied(ping)) << ping;
}

TEST(OsMachine, ProcessesFilesAndSockets) {
  OsMachine machine({}, [] { return int64_t{1}; });
  const auto process = machine.Process(getpid());
  ASSERT_TRUE(process.ok()) << process.status();
  EXPECT_GT(process->open_files_max, 0u);
  EXPECT_FALSE(machine.Process(0x7fffffff).ok());
  EXPECT_THAT(std::string(machine.UnixAccepts("/nowhere/attach.sock").message()), HasSubstr("/nowhere/attach.sock"));
  EXPECT_FALSE(machine.Read("/nowhere").ok());
}

// Its own number may be another: a container's first process is 1 there, and 1 is systemd here.
TEST(OsMachine, TheListenerOfASocketIsNamedByItsNumberHere) {
  OsMachine machine({}, [] { return int64_t{1}; });
  const std::string path = "/tmp/r2cc-listener." + std::to_string(getpid());
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  std::strcpy(address.sun_path, path.c_str());
  EXPECT_FALSE(machine.ListenerPid(path).ok());
  const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(listen(listener, 4), 0);
  const auto own = machine.ListenerPid(path);
  ASSERT_TRUE(own.ok()) << own.status();
  EXPECT_EQ(*own, getpid());
  if (geteuid() == 0) {
    const pid_t contained = fork();
    if (contained == 0) {
      if (unshare(CLONE_NEWPID) != 0) _exit(1);
      const pid_t first = fork();
      if (first == 0) _exit(getpid() == 1 && absl::IsNotFound(machine.ListenerPid(path).status()) ? 0 : 2);
      int status = 0;
      waitpid(first, &status, 0);
      _exit(WEXITSTATUS(status));
    }
    int status = 0;
    ASSERT_EQ(waitpid(contained, &status, 0), contained);
    EXPECT_EQ(WEXITSTATUS(status), 0) << "from another pid namespace it has no number";
  }
  close(listener);
  unlink(path.c_str());
}

TEST(OsMachine, LibrariesInTheLoadersOrderAndWhetherTheyLoad) {
  const std::string folder = testing::TempDir() + "/libraries";
  for (const char* name : {"/a", "/b", "/c"}) std::filesystem::create_directories(folder + name);
  std::ofstream(folder + "/a/libx.so") << "no library";
  std::ofstream(folder + "/b/libx.so") << "another one";
  std::filesystem::remove(folder + "/c/libx.so");
  std::filesystem::create_symlink(folder + "/a/libx.so", folder + "/c/libx.so");
  OsMachine machine({{"LD_LIBRARY_PATH", folder + "/a:" + folder + "/c:" + folder + "/b"}}, [] { return int64_t{1}; });
  EXPECT_THAT(machine.Libraries("libx.so"), testing::ElementsAre(folder + "/a/libx.so", folder + "/b/libx.so"));
  EXPECT_THAT(std::string(machine.Loads(folder + "/a/libx.so").message()), HasSubstr("libx.so"));
  EXPECT_TRUE(machine.Loads("libc.so.6").ok());
}

}  // namespace
}  // namespace r2cc::client
