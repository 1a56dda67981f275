// Machines that are rebooted: with a clock that is hours off, without their files, without closing connections. Each in a network namespace
// of its own, which is made again.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "daemon/program/r2ccd_rig.h"

namespace r2cc::daemon {
namespace {

// From the moment that the machine has its network and its daemon begins.
constexpr Nanos kBelievedWithin = 5 * kNanosPerSecond;
constexpr int kHours = 20;

class RebootTest : public R2ccdTest {
 protected:
  void SetUp() override {
    R2ccdTest::SetUp();
    // Skipped where there can be none: the first one shows it.
    if (const std::string missing = MakeNamespace(Netns(kNodes)); !missing.empty()) GTEST_SKIP() << missing;
    hub_ = Netns(kNodes);
    ASSERT_TRUE(Ip("-n " + hub_ + " link add br0 type bridge") && Ip("-n " + hub_ + " link set br0 up"));
    for (int node = 0; node < kNodes; ++node) {
      ASSERT_TRUE(SwitchOn(node));
      std::ofstream file(ConfigFile(node));
      file << "node: \"" << Node(node) << "\"\nlisten: \"" << Host(node) << ":7460\"\ninsecure: true\n"
           << "store { embedded_node: \"n0\" }\nnics { name: \"rail0\" interface: \"eth0\" }\n";
      for (int peer = 0; peer < kNodes; ++peer) file << "peers { node: \"" << Node(peer) << "\" address: \"" << Host(peer) << ":7460\" }\n";
    }
    for (int node = 0; node < kNodes; ++node) Start(node);
    for (int node = 0; node < kNodes; ++node) ASSERT_TRUE(AwaitPeers(node)) << Status(node).DebugString();
  }
  void TearDown() override {
    R2ccdTest::TearDown();
    if (hub_.empty()) return;
    for (int node = 0; node <= kNodes; ++node) EXPECT_TRUE(Ip("netns delete " + Netns(node)));
  }

  static std::string Netns(int node) { return "r2ccd-reboot-" + std::to_string(getpid()) + "-" + std::to_string(node); }
  static std::string Host(int node) { return "10.78.0." + std::to_string(node + 1); }
  static std::string Port(int node) { return "port" + std::to_string(node); }
  // A machine's kernel, with nothing in it of the one before, and its link.
  bool SwitchOn(int node) const {
    const std::string netns = Netns(node);
    return MakeNamespace(netns).empty() &&
           Ip("-n " + hub_ + " link add " + Port(node) + " type veth peer name eth0 address 02:00:00:00:78:0" + std::to_string(node) +
              " netns " + netns) &&
           Ip("-n " + hub_ + " link set " + Port(node) + " master br0 up") && Ip("-n " + netns + " link set lo up") &&
           Ip("-n " + netns + " link set eth0 up") && Ip("-n " + netns + " address add " + Host(node) + "/24 dev eth0");
  }
  bool SwitchOff(int node) const { return Ip("netns delete " + Netns(node)); }
  void Start(int node) {
    netns_ = Netns(node);
    StartDaemon(node);
  }
  uint32_t Weight(int asked, int node) {
    const v1::StatusReply status = Status(asked);
    for (const v1::NodeView& view : status.nodes())
      if (view.node() == Node(node)) return view.nics(0).operator_weight_permille();
    return 0;
  }

  struct Reboot {
    int node;
    int64_t clock_s;          // how far its clock is ahead afterwards
    bool files_lost;          // the state directory too; the run directory always
    bool closes_connections;  // the others' kernels learn that its connections end
  };
  // The machine is rebooted, and its operator sets something at once that all must receive.
  void Try(const Reboot& reboot) {
    const int node = reboot.node;
    // First the link: nobody receives the dying kernel's packets. Then all that the kernel knew, with its connections.
    ASSERT_TRUE(reboot.closes_connections || Ip("-n " + hub_ + " link delete " + Port(node)));
    daemons_[static_cast<size_t>(node)]->Signal(SIGKILL);
    daemons_[static_cast<size_t>(node)]->Wait();
    ASSERT_TRUE(!reboot.closes_connections || Ip("-n " + hub_ + " link delete " + Port(node)));
    ASSERT_TRUE(SwitchOff(node));
    std::filesystem::remove_all(RunDir(node));
    if (reboot.files_lost) std::filesystem::remove_all(StateDir(node));
    flags_ = {"--wall_clock_offset_s", std::to_string(reboot.clock_s)};
    ASSERT_TRUE(SwitchOn(node));
    const Nanos begin = Now();
    Start(node);
    // Another one each time: a report of its former run is no answer.
    const uint32_t weight = 100 + static_cast<uint32_t>(++reboots_);
    EXPECT_EQ(Act(node, Node(node), "rail0", v1::SET_WEIGHT, weight), "");
    for (int other = 0; other < kNodes; ++other) {
      EXPECT_TRUE(WaitUntil([&] { return Weight(other, node) == weight; })) << "n" << other << "\n" << daemons_[other]->log();
      if (other == node) continue;
      const Nanos took = Now() - begin;
      EXPECT_LT(took, kBelievedWithin) << "n" << other;
      std::printf("n%d, clock %+ld h, files %s, %s: believed by n%d after %.2f s\n", node, static_cast<long>(reboot.clock_s / 3600),
                  reboot.files_lost ? "lost" : "kept", reboot.closes_connections ? "with a FIN" : "without a FIN", other, took / 1e9);
      const std::vector<v1::Event> takeovers = Events(other, "peer-anew");
      EXPECT_GE(std::count_if(takeovers.begin(), takeovers.end(),
                              [&](const v1::Event& event) {
                                return event.message().rfind("the daemon of " + Node(node) + " was restarted and is accepted", 0) == 0;
                              }),
                reboots_)
          << "n" << other;
    }
    EXPECT_TRUE(Events(node, "duplicate-node").empty());
  }

 private:
  std::string hub_;  // the namespace with the switch
  int reboots_ = 0;
};

TEST_F(RebootTest, TheClockIsHoursBackAndNoConnectionWasClosed) {
  Try({.node = 2, .clock_s = -kHours * 3600, .files_lost = false, .closes_connections = false});
}

TEST_F(RebootTest, TheFilesAreLostAndTheClockIsHoursBack) {
  Try({.node = 2, .clock_s = -kHours * 3600, .files_lost = true, .closes_connections = false});
  Try({.node = 2, .clock_s = 0, .files_lost = true, .closes_connections = false});
}

TEST_F(RebootTest, TheClockIsHoursAheadAndThenRight) {
  Try({.node = 1, .clock_s = kHours * 3600, .files_lost = false, .closes_connections = true});
  Try({.node = 1, .clock_s = 0, .files_lost = true, .closes_connections = false});
}

TEST_F(RebootTest, TheNodeOfTheStoreIsNoOther) {
  Try({.node = 0, .clock_s = -kHours * 3600, .files_lost = true, .closes_connections = false});
}

}  // namespace
}  // namespace r2cc::daemon
