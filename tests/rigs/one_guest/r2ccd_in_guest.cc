// r2ccd as it is shipped, on node a's soft-RoCE devices: cables that are pulled, a device that is taken away. In a guest.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/rigs/one_guest/rank_pair.h"

namespace r2cc::rig {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr char kFolder[] = "/tmp/r2ccd";

class DaemonInGuest : public testing::Test {
 protected:
  void SetUp() override {
    Shell(std::string("mkdir -p ") + kFolder);
    std::ofstream(Path("conf"))
        << R"(node: "a" listen: "127.0.0.1:7460" nics { name: "r0" interface: "v0a" } nics { name: "r1" interface: "v1a" })"
        << "\n";
    pid_ = fork();
    if (pid_ == 0) {
      const int out = open(Path("log").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      dup2(out, STDOUT_FILENO);
      dup2(out, STDERR_FILENO);
      execl("daemon/r2ccd", "r2ccd", "--config", Path("conf").c_str(), "--run_dir", kFolder, "--state_dir", Path("state").c_str(), nullptr);
      _exit(127);
    }
  }
  void TearDown() override {
    kill(pid_, SIGTERM);
    int status = 0;
    waitpid(pid_, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    if (HasFailure()) std::fprintf(stderr, "r2ccd said:\n%s\n", Log().c_str());
  }

  static std::string Path(const std::string& file) { return std::string(kFolder) + "/" + file; }
  static std::string Log() {
    std::ifstream file(Path("log"));
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }
  // Says so from here on, or has since Mark().
  bool AwaitLine(const std::string& words) {
    return Await([&] { return Log().find(words, mark_) != std::string::npos; });
  }
  void Mark() { mark_ = Log().size(); }
  static std::string Asked(const std::string& command) {
    std::string said;
    FILE* const out = popen(("client/r2ccctl --socket " + Path("r2ccd.sock") + " " + command + " 2>&1").c_str(), "r");
    std::array<char, 512> part{};
    while (fgets(part.data(), part.size(), out) != nullptr) said += part.data();
    EXPECT_EQ(pclose(out), 0) << said;
    return said;
  }

 private:
  pid_t pid_ = -1;
  size_t mark_ = 0;
};

TEST_F(DaemonInGuest, WhatTheDevicesSayIsEvidence) {
  for (const char* device : {"rxe0a", "rxe1a"}) ASSERT_TRUE(AwaitLine(std::string("an RDMA device is watched device=") + device)) << device;

  // The interface goes down and the port with it: one verdict, and the port's word is its evidence.
  Shell("ip link set v0a down");
  ASSERT_TRUE(AwaitLine("a/r0: HEALTHY -> FAILED: link down"));
  Shell("ip link set v0a up");
  ASSERT_TRUE(AwaitLine("a/r0: PROVING -> HEALTHY"));
  EXPECT_THAT(Asked("nic why a/r0"), AllOf(HasSubstr("rdma-event"), HasSubstr("RDMA port rxe0a/1: port"), HasSubstr("rdma-up")));
  EXPECT_EQ(Log().find("-> DEGRADED"), std::string::npos);

  // The kernel waits until r2ccd has closed it.
  Mark();
  Shell("rdma link delete rxe1a");
  ASSERT_TRUE(AwaitLine("a/r1: HEALTHY -> DEGRADED: its RDMA device rxe1a is gone"));
  EXPECT_THAT(Asked("nic list --bad"), AllOf(HasSubstr("r1"), HasSubstr("DEGRADED"), HasSubstr("its RDMA device rxe1a is gone")));
  Shell("rdma link add rxe1a type rxe netdev v1a");
  ASSERT_TRUE(AwaitLine("a/r1: DEGRADED -> HEALTHY"));
}

}  // namespace
}  // namespace r2cc::rig
