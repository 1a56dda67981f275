// Containers and the machine's own daemon: what root of a job's container, or one that asks for the operators' group, may do to the node.
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include "daemon/program/r2ccd_rig.h"

namespace r2cc::daemon {
namespace {

using testing::HasSubstr;

constexpr char kCtl[] = "client/r2ccctl";
// The group of the operators, in these tests.
constexpr gid_t kOperators = 64750;

class ContainerTest : public R2ccdTest {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root: makes pid and mount namespaces, and becomes other users";
    R2ccdTest::SetUp();
    std::filesystem::permissions(folder_, std::filesystem::perms(0755));
    WriteConfig(0, "grants { roles: VIEW roles: OPERATE users: \"0\" }\ngrants { roles: VIEW roles: OPERATE groups: \"" +
                       std::to_string(kOperators) + "\" }\n");
    // As the unit makes it.
    std::filesystem::create_directories(ControlDir(0));
    std::filesystem::permissions(ControlDir(0), std::filesystem::perms(0750));
    ASSERT_EQ(chown(ControlDir(0).c_str(), 0, kOperators), 0);
    StartDaemon(0);
    // The part of the node that a job's container has.
    std::filesystem::create_directories(Mounted());
  }

  std::string Mounted() const { return folder_ + "/container/run"; }
  // The output of a command; `code`: its exit code. It is one of r2ccctl, as a shell takes it.
  std::string Run(const std::string& command, int* code) {
    const std::string output = folder_ + "/output";
    const int status = std::system((command + " > " + output + " 2>&1").c_str());
    *code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return ReadFile(output);
  }
  std::string OnTheMachine(const std::string& user, const std::string& socket, int* code) {
    return Run(user + " " + kCtl + " --socket " + socket + " nic weight n0/rail0 0.5", code);
  }
  // In a pid namespace of its own, with a read-only bind of `source` at Mounted().
  std::string InAContainer(const std::string& source, const std::string& user, const std::string& arguments, int* code) {
    return Run("unshare --pid --fork --mount --propagation private sh -c 'mount --bind " + source + " " + Mounted() +
                   " && mount -o remount,bind,ro " + Mounted() + " && exec " + user + " " + arguments + "'",
               code);
  }
  uint32_t Weight() {
    const v1::StatusReply status = Status(0);
    for (const v1::NodeView& node : status.nodes())
      for (const v1::NicView& nic : node.nics())
        if (node.node() == "n0" && nic.name() == "rail0") return nic.operator_weight_permille();
    return 0;
  }

  const std::string root_ = "setpriv --reuid=0 --regid=0 --clear-groups";
  const std::string operator_ = "setpriv --reuid=1000 --regid=1000 --groups=" + std::to_string(kOperators);
  const std::string user_ = "setpriv --reuid=1000 --regid=1000 --clear-groups";
};

TEST_F(ContainerTest, OnTheMachineTheyMay) {
  int code = -1;
  for (const std::string& who : {root_, operator_})
    for (const std::string& socket : {ControlDir(0) + "/r2ccd.sock", RunDir(0) + "/r2ccd.sock"}) {
      EXPECT_EQ(Act(0, "n0", "rail0", v1::SET_WEIGHT, 1000), "");
      const std::string output = OnTheMachine(who, socket, &code);
      EXPECT_EQ(code, 0) << output;
      EXPECT_EQ(Weight(), 500u) << socket << ": the second is where r2ccctl of 0.2.0 looks";
    }
  EXPECT_EQ(Act(0, "n0", "rail0", v1::SET_WEIGHT, 1000), "");
  EXPECT_THAT(OnTheMachine(user_, ControlDir(0) + "/r2ccd.sock", &code), HasSubstr("not allowed to open"));
  EXPECT_EQ(Weight(), 1000u);
}

TEST_F(ContainerTest, RootOfAContainerDrainsNothing) {
  int code = 0;
  const std::string weight = std::string(kCtl) + " --socket " + Mounted() + "/r2ccd.sock nic weight n0/rail0 0.5";
  for (const std::string& who : {root_, operator_}) {
    // It has the mounts that the documents name for a job.
    EXPECT_THAT(InAContainer(RunDir(0), who, weight, &code), HasSubstr("there is no " + Mounted() + "/r2ccd.sock"));
    EXPECT_NE(code, 0);
    // Against all advice it has the control directory.
    for (const char* action : {"nic weight n0/rail0 0.5", "nic drain n0/rail0", "status"}) {
      EXPECT_THAT(InAContainer(ControlDir(0), who, std::string(kCtl) + " --socket " + Mounted() + "/r2ccd.sock " + action, &code),
                  HasSubstr("has no role on node n0"))
          << action;
      EXPECT_NE(code, 0);
    }
  }
  EXPECT_EQ(Weight(), 1000u);
}

TEST_F(ContainerTest, TheLockIsOutOfReach) {
  std::set<std::string> shown;
  for (const auto& entry : std::filesystem::directory_iterator(RunDir(0))) shown.insert(entry.path().filename());
  EXPECT_EQ(shown, (std::set<std::string>{"attach.sock", "r2ccd.sock", "rails"})) << "r2ccd.sock leads nowhere in a container";
  int code = 0;
  // One of the operators' group on the machine, through the directory that it may enter.
  Run(operator_ + " flock --nonblock " + ControlDir(0) + "/r2ccd.lock true", &code);
  EXPECT_NE(code, 0);
  EXPECT_THAT(Run(operator_ + " cat " + ControlDir(0) + "/r2ccd.lock", &code), HasSubstr("Permission denied"));
}

}  // namespace
}  // namespace r2cc::daemon
