// The rights of root, other users and operators with a certificate at a running r2ccd.
#include <gmock/gmock.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "daemon/program/r2ccd_trust_rig.h"

namespace r2cc::daemon {
namespace {

using testing::HasSubstr;

TEST_F(TrustTest, AnOperatorFromAfarSteersEveryNodeAtOnce) {
  UseTls();
  StartAll();
  Put(folder_ + "/alice", "operator", *Issue(ca_, {Identity::Kind::kOperator, "alice"}, ForDays(NowS(), 10)));
  const std::string alice = "--server 127.0.0.1:" + std::to_string(ports_[0]) + " --certs " + folder_ + "/alice ";
  EXPECT_THAT(Ctl(alice + "nic drain 'rail0/*'"), testing::StartsWith("0 "));
  for (int node = 0; node < nodes_; ++node) {
    EXPECT_EQ(StateOf(node, Node(node), "rail0"), v1::DRAINED);
    ASSERT_FALSE(Events(node, "operator").empty()) << "n" << node;
    EXPECT_THAT(Events(node, "operator").back().message(), HasSubstr("drain " + Node(node) + "/rail0, by operator alice at 127.0.0.1:"));
  }
  EXPECT_THAT(Ctl(alice + "nic undrain n1/rail0"), testing::StartsWith("0 ")) << "one NIC alone, too";
  // A refusal of one node is reported for that node, and the others act.
  EXPECT_THAT(Ctl(alice + "nic drain 'rail1/*'"), testing::AllOf(testing::StartsWith("1 "), HasSubstr("2 of 3 NICs were refused"),
                                                                 HasSubstr("r2ccctl: n0/rail1: n0/rail1 is the last NIC of n0"),
                                                                 HasSubstr("r2ccctl: n2/rail1: n2/rail1 is the last NIC of n2")));
  EXPECT_EQ(StateOf(1, "n1", "rail1"), v1::DRAINED);
}

TEST_F(TrustTest, AnOperatorFromAfarHasEveryNodeForgetOneThatLeft) {
  UseTls();
  StartAll();
  Put(folder_ + "/alice", "operator", *Issue(ca_, {Identity::Kind::kOperator, "alice"}, ForDays(NowS(), 10)));
  const std::string forget = "--server 127.0.0.1:" + std::to_string(ports_[0]) + " --certs " + folder_ + "/alice node forget ";
  EXPECT_THAT(Ctl(forget + "n9"), testing::StartsWith("1 r2ccctl: there is no node 'n9'"));
  EXPECT_THAT(Ctl(forget + "n2"), HasSubstr(" r2ccctl: on n")) << "the daemon that refuses";
  daemons_[2]->Signal(SIGKILL);
  daemons_[2]->Wait();
  // A daemon may have received from n2 later than another, and keeps it until it is asked again.
  std::string last;
  EXPECT_TRUE(WaitUntil([&] {
    if (Status(0).nodes_size() == 2 && Status(1).nodes_size() == 2) return true;
    last = Ctl(forget + "n2");
    return false;
  })) << last;
  EXPECT_THAT(last, testing::StartsWith("0 n2 is forgotten"));
  for (int node = 0; node < 2; ++node) {
    ASSERT_FALSE(Events(node, "operator").empty()) << "n" << node;
    EXPECT_THAT(Events(node, "operator").back().message(), HasSubstr("forget n2, by operator alice at 127.0.0.1:"));
  }
  EXPECT_THAT(Ctl(forget + "n2"), testing::StartsWith("1 r2ccctl: there is no node 'n2'"));
}

TEST_F(TrustTest, AGrantTakesNothingFromRootAndTheDaemonsUser) {
  WriteConfig(0, "grants { roles: VIEW users: \"4711\" }\n");
  std::string output;
  EXPECT_EQ(Run({"--config", ConfigFile(0), "--check_config"}, &output), 0);
  EXPECT_THAT(output,
              HasSubstr("warning: grants replace the defaults: other users of this node lose VIEW; to keep it: grants { roles: VIEW "
                        "everyone: true }"));
  EXPECT_THAT(output, HasSubstr("operators with a certificate lose VIEW and OPERATE"));
  LetUsersIn(0);
  StartDaemon(0);
  const std::string run_dir = "--run_dir " + RunDir(0) + " ";
  for (const std::string arguments : {"status", "nic drain n0/rail0", "fail-nic n0/rail0 --force", "config reload"})
    EXPECT_THAT(Ctl(run_dir + arguments), testing::StartsWith("0 ")) << arguments << ": this is the daemon's own user";
  if (geteuid() != 0) GTEST_SKIP() << "needs root: asks as another user";
  const std::string nobody = "setpriv --reuid=65534 --regid=65534 --clear-groups ";
  EXPECT_THAT(Ctl(run_dir + "status", nobody), HasSubstr("uid 65534 (pid "));
  EXPECT_THAT(Ctl(run_dir + "health", nobody), testing::StartsWith("0 ok: r2ccd of node n0 serves plan "));
}

TEST_F(TrustTest, ACallerWithoutOperateIsRefusedAndRolesChangeAtOnce) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root: asks as another user";
  WriteConfig(0, "grants { roles: VIEW users: \"65534\" }\n");
  LetUsersIn(0);
  StartDaemon(0);
  const auto nobody = [&](const std::string& arguments) {
    return Ctl("--run_dir " + RunDir(0) + " " + arguments, "setpriv --reuid=65534 --regid=65534 --clear-groups ");
  };
  EXPECT_THAT(nobody("config reload"), HasSubstr("does not have the role OPERATE on node n0"));
  ASSERT_FALSE(Events(0, "operator").empty());
  EXPECT_TRUE(Events(0, "operator").back().audit().refused());
  EXPECT_THAT(nobody("nic drain n0/rail0"), testing::StartsWith("1 "));
  WriteConfig(0, "grants { roles: VIEW roles: OPERATE users: \"65534\" }\n");
  daemons_[0]->Signal(SIGHUP);
  EXPECT_TRUE(WaitUntil([&] { return nobody("nic drain n0/rail0").starts_with("0 "); })) << Status(0).DebugString();
  EXPECT_THAT(nobody("config reload"), testing::StartsWith("0 "));
}

// The disk is full while a NIC is drained: r2ccctl reports that, and the drain is written once there is room.
TEST_F(TrustTest, ADrainThatCouldNotBeKeptIsReportedAndWrittenLater) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root: mounts a file system that can be filled";
  std::filesystem::create_directories(StateDir(0));
  ASSERT_EQ(unshare(CLONE_NEWNS), 0);
  ASSERT_EQ(mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0);
  ASSERT_EQ(mount("none", StateDir(0).c_str(), "tmpfs", 0, "size=256k"), 0);
  StartDaemon(0);
  const std::string filler = StateDir(0) + "/filler";
  std::ofstream(filler) << std::string(1 << 20, 'x');
  EXPECT_THAT(Ctl("--run_dir " + RunDir(0) + " nic drain n0/rail0"), testing::AllOf(testing::StartsWith("3 "), HasSubstr("NOT KEPT")));
  std::filesystem::remove(filler);
  EXPECT_TRUE(WaitUntil([&] {
    const v1::StatusReply status = Status(0);
    for (const std::string& alarm : status.alarms())
      if (alarm.find(StateDir(0)) != std::string::npos && alarm.find("the audit") == std::string::npos) return false;
    return true;
  })) << Status(0).DebugString();
  daemons_[0]->Signal(SIGKILL);
  daemons_[0]->Wait();
  StartDaemon(0);
  EXPECT_EQ(StateOf(0, "n0", "rail0"), v1::DRAINED);
  daemons_[0].reset();
  EXPECT_EQ(umount2(StateDir(0).c_str(), MNT_DETACH), 0);
}

// Two NICs: one drained for a job that runs, the other for all. In either order the second would leave the job nothing.
TEST_F(TrustTest, AJobKeepsItsLastNicInEitherOrder) {
  StartDaemon(0);
  const auto plugin = Attach(0);
  const std::string drain = "--run_dir " + RunDir(0) + " nic drain n0/";
  for (const auto& [first, second] : {std::pair("rail0 --job test", "rail1"), {"rail1", "rail0 --job test"}}) {
    EXPECT_THAT(Ctl(drain + first), testing::StartsWith("0 "));
    EXPECT_THAT(Ctl(drain + second), testing::StartsWith("1 ")) << first << ", then " << second;
    EXPECT_THAT(Ctl("--run_dir " + RunDir(0) + " nic undrain n0/" + first), testing::StartsWith("0 "));
  }
}

// The holder of a node's key speaks for the node: the operators' group, which may act on the node alone, must not read it.
TEST_F(TrustTest, AKeyThatOperatorsCanReadIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root: gives a file to another group";
  UseTls();
  ASSERT_EQ(unshare(CLONE_NEWNS), 0);
  ASSERT_EQ(mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0);
  std::ofstream(folder_ + "/group") << ReadFile("/etc/group") << "r2cc:x:64750:\n";
  ASSERT_EQ(mount((folder_ + "/group").c_str(), "/etc/group", nullptr, MS_BIND, nullptr), 0);
  const std::string key = TlsDirectory(0) + "/node.key";
  std::string output;
  for (const gid_t group : {gid_t{64751}, gid_t{64750}}) {
    ASSERT_EQ(chown(key.c_str(), 0, group), 0);
    ASSERT_EQ(chmod(key.c_str(), 0640), 0);
    EXPECT_EQ(Run({"--config", ConfigFile(0), "--check_config"}, &output) == 0, group != 64750) << output;
  }
  EXPECT_THAT(output, HasSubstr("node.key can be read by all who may command this node"));
  EXPECT_EQ(umount2("/etc/group", MNT_DETACH), 0);
}

}  // namespace
}  // namespace r2cc::daemon
