// What a running r2ccd lets root, other users and operators with a certificate do.
#include <gmock/gmock.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "daemon/trust/r2ccd_trust_rig.h"

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
    EXPECT_THAT(Events(node, "operator").back().message(),
                HasSubstr("drain " + Node(node) + "/rail0, said by operator alice at 127.0.0.1:"));
  }
  EXPECT_THAT(Ctl(alice + "nic undrain n1/rail0"), testing::StartsWith("0 ")) << "one NIC alone, too";
  // What one node refuses is said of that node, and done on the others.
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
  EXPECT_THAT(Ctl(forget + "n2"), HasSubstr(" r2ccctl: on n")) << "the daemon that says so";
  daemons_[2]->Signal(SIGKILL);
  daemons_[2]->Wait();
  // A daemon may have heard of n2 later than another, and keeps it until it is asked again.
  std::string last;
  EXPECT_TRUE(WaitUntil([&] {
    if (Status(0).nodes_size() == 2 && Status(1).nodes_size() == 2) return true;
    last = Ctl(forget + "n2");
    return false;
  })) << last;
  EXPECT_THAT(last, testing::StartsWith("0 n2 is forgotten"));
  for (int node = 0; node < 2; ++node) {
    ASSERT_FALSE(Events(node, "operator").empty()) << "n" << node;
    EXPECT_THAT(Events(node, "operator").back().message(), HasSubstr("forget n2, said by operator alice at 127.0.0.1:"));
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
  for (const std::string words : {"status", "nic drain n0/rail0", "fail-nic n0/rail0 --force", "config reload"})
    EXPECT_THAT(Ctl(run_dir + words), testing::StartsWith("0 ")) << words << ": this is the daemon's own user";
  if (geteuid() != 0) GTEST_SKIP() << "needs root: asks as another user";
  const std::string nobody = "setpriv --reuid=65534 --regid=65534 --clear-groups ";
  EXPECT_THAT(Ctl(run_dir + "status", nobody), HasSubstr("uid 65534 (pid "));
  EXPECT_THAT(Ctl(run_dir + "health", nobody), testing::StartsWith("0 ok: r2ccd of node n0 serves plan "));
}

TEST_F(TrustTest, WhoMayNotOperateIsRefusedAndTheRolesChangeAtOnce) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root: asks as another user";
  WriteConfig(0, "grants { roles: VIEW users: \"65534\" }\n");
  LetUsersIn(0);
  StartDaemon(0);
  const auto nobody = [&](const std::string& words) {
    return Ctl("--run_dir " + RunDir(0) + " " + words, "setpriv --reuid=65534 --regid=65534 --clear-groups ");
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

}  // namespace
}  // namespace r2cc::daemon
