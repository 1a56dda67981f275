// r2ccd in a network namespace with real links: the kernel's word must be in the jobs' page in about a millisecond.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/program/r2ccd_rig.h"

namespace r2cc::daemon {
namespace {

class R2ccdLinkTest : public R2ccdTest {
 protected:
  void SetUp() override {
    R2ccdTest::SetUp();
    const std::string name = "r2ccd-test-" + std::to_string(getpid());
    if (const std::string missing = MakeNamespace(name); !missing.empty()) GTEST_SKIP() << missing;
    netns_ = name;
    // eth1 and eth2 are the NICs, each with the other end of its cable next to it.
    for (const std::string nic : {"eth1", "eth2"}) {
      ASSERT_TRUE(Ip("-n " + netns_ + " link add " + nic + " type veth peer name " + nic + "-peer"));
      ASSERT_TRUE(Ip("-n " + netns_ + " link set " + nic + " up") && Ip("-n " + netns_ + " link set " + nic + "-peer up"));
    }
    ASSERT_TRUE(Ip("-n " + netns_ + " link set lo up"));
    ASSERT_TRUE(Ip("-n " + netns_ + " address add 10.77.1.1/24 dev eth1"));
    std::ofstream(ConfigFile(0)) << "node: \"n0\"\nlisten: \"127.0.0.1:0\"\nnics { name: \"rail0\" interface: \"eth1\" }\nnics { name: "
                                    "\"rail1\" interface: \"eth2\" }\ndrills { allow: true }\n";
  }
  void TearDown() override {
    R2ccdTest::TearDown();
    EXPECT_TRUE(netns_.empty() || Ip("netns delete " + netns_));
  }

  // Sets an interface up or down without a program between the clock and the kernel; returns the time just before.
  Nanos SetUpOrDown(const std::string& interface, bool up) {
    Nanos begin = 0;
    WithSocket([&](int fd) { begin = Set(fd, interface, up); });
    return begin;
  }
  // Down and up again so often, without a pause.
  void Flap(const std::string& interface, int times) {
    WithSocket([&](int fd) {
      for (int i = 0; i < 2 * times; ++i) Set(fd, interface, i % 2 != 0);
    });
  }

  // In the network namespace: a thread goes there.
  void WithSocket(const std::function<void(int fd)>& use) {
    std::thread([&] {
      const int ns = open(("/run/netns/" + netns_).c_str(), O_RDONLY | O_CLOEXEC);
      ASSERT_EQ(setns(ns, CLONE_NEWNET), 0);
      const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
      use(fd);
      close(fd);
      close(ns);
    }).join();
  }
  static Nanos Set(int fd, const std::string& interface, bool up) {
    ifreq request{};
    std::strncpy(request.ifr_name, interface.c_str(), IFNAMSIZ - 1);
    EXPECT_EQ(ioctl(fd, SIOCGIFFLAGS, &request), 0);
    request.ifr_flags = static_cast<short>(up ? request.ifr_flags | IFF_UP : request.ifr_flags & ~IFF_UP);
    const Nanos begin = Now();
    EXPECT_EQ(ioctl(fd, SIOCSIFFLAGS, &request), 0);
    return begin;
  }
};

TEST_F(R2ccdLinkTest, AnInterfaceThatGoesDownIsOutOfThePage) {
  StartDaemon(0);
  // The rail is known by its address alone, as in a container with names of its own.
  Plugin plugin(RunDir(0) + "/attach.sock", {"10.77.1.1"});
  ASSERT_TRUE(plugin.attached()) << plugin.reply().reason;
  EXPECT_STREQ(plugin.reply().nics[0], "rail0");
  ASSERT_NE(plugin.AwaitState("n0", "rail1", plan::PlannedState::kHealthy), 0);
  std::vector<Nanos> latencies;
  for (int round = 0; round < 5; ++round) {
    // Its own end, or the far end of the cable: the carrier goes either way.
    const char* const interface = round % 2 == 0 ? "eth1" : "eth1-peer";
    Nanos seen = 0;
    std::thread watcher([&] { seen = plugin.AwaitState("n0", "rail0", plan::PlannedState::kFailed); });
    const Nanos begin = SetUpOrDown(interface, false);
    watcher.join();
    ASSERT_NE(seen, 0) << interface;
    EXPECT_LT(seen - begin, kVerdictMax);
    latencies.push_back(seen - begin);
    EXPECT_EQ(plugin.Weight("n0", "rail0"), 0);
    EXPECT_EQ(plugin.Weight("n0", "rail1"), 1000);
    SetUpOrDown(interface, true);
    ASSERT_NE(plugin.AwaitState("n0", "rail0", plan::PlannedState::kHealthy), 0) << interface;
  }
  std::sort(latencies.begin(), latencies.end());
  std::printf("link down, to the page: median %.2f ms, worst %.2f ms of %zu\n", latencies[latencies.size() / 2] / 1e6,
              latencies.back() / 1e6, latencies.size());
}

// As fast as the kernel flaps it: few plans, and nobody has to guess why the rail is out.
TEST_F(R2ccdLinkTest, ACableThatFlapsFasterThanAnybodyReactsIsCountedAndExplained) {
  StartDaemon(0);
  Plugin plugin(RunDir(0) + "/attach.sock", {"10.77.1.1"});
  ASSERT_TRUE(plugin.attached());
  ASSERT_NE(plugin.AwaitState("n0", "rail0", plan::PlannedState::kHealthy), 0);
  const size_t plans = Events(0, "plan-published").size();
  constexpr int kFlaps = 300;
  Flap("eth1-peer", kFlaps);
  ASSERT_TRUE(WaitUntil([&] { return !Events(0, "link-flaps").empty(); }));
  const v1::Event flaps = Events(0, "link-flaps").front();
  EXPECT_EQ(flaps.nic(), "rail0");
  EXPECT_NE(flaps.message().find(" times"), std::string::npos) << flaps.message();
  ASSERT_NE(plugin.AwaitState("n0", "rail0", plan::PlannedState::kHealthy), 0);
  EXPECT_EQ(plugin.Weight("n0", "rail1"), 1000);
  EXPECT_LE(Events(0, "link-flaps").size(), 2u);
  EXPECT_LT(Events(0, "plan-published").size() - plans, size_t{kFlaps} / 3);

  grpc::ClientContext context;
  v1::ExplainNicRequest request;
  request.set_node("n0");
  request.set_nic("rail0");
  v1::ExplainNicReply why;
  ASSERT_TRUE(Control(0)->ExplainNic(&context, request, &why).ok());
  int64_t flips = 0;
  for (const auto& entry : why.evidence())
    if (entry.kind() == "carrier-flips") flips += entry.value();
  EXPECT_GE(flips, kFlaps) << "the kernel counts them all";
  EXPECT_EQ(std::count_if(why.done().begin(), why.done().end(), [](const auto& event) { return event.kind() == "link-flaps"; }),
            static_cast<int>(Events(0, "link-flaps").size()));
}

TEST_F(R2ccdLinkTest, AnInterfaceThatIsGoneIsDead) {
  StartDaemon(0);
  Plugin plugin(RunDir(0) + "/attach.sock", {"10.77.1.1"});
  ASSERT_TRUE(plugin.attached());
  ASSERT_TRUE(Ip("-n " + netns_ + " link delete eth2"));
  EXPECT_NE(plugin.AwaitState("n0", "rail1", plan::PlannedState::kFailed), 0);
}

TEST_F(R2ccdLinkTest, ANicThatIsDownFromTheStartIsListedAndDead) {
  ASSERT_TRUE(Ip("-n " + netns_ + " link set eth2 down"));
  StartDaemon(0);
  Plugin plugin(RunDir(0) + "/attach.sock", {"10.77.1.1"});
  ASSERT_TRUE(plugin.attached());
  EXPECT_NE(plugin.AwaitState("n0", "rail1", plan::PlannedState::kFailed), 0);
  EXPECT_EQ(plugin.Weight("n0", "rail0"), 1000);
}

// A port into which nobody has put a cable is no fault; one that lost its cable while no daemon ran is.
TEST_F(R2ccdLinkTest, APortIsAFaultOnceItHadACarrier) {
  ASSERT_TRUE(Ip("-n " + netns_ + " link add eth3 type veth peer name eth3-peer"));
  std::ofstream(ConfigFile(0), std::ios::app) << "nics { name: \"rail2\" interface: \"eth3\" }\n";
  StartDaemon(0);
  const auto state = [&] { return Status(0).nodes(0).nics(2).state(); };
  EXPECT_EQ(v1::NicState_Name(state()), "UNCABLED");
  EXPECT_EQ(Status(0).word(), v1::NODE_HEALTHY);
  ASSERT_TRUE(Ip("-n " + netns_ + " link set eth3 up") && Ip("-n " + netns_ + " link set eth3-peer up"));
  EXPECT_TRUE(WaitUntil([&] { return state() == v1::HEALTHY; })) << Status(0).DebugString();
  daemons_[0]->Signal(SIGTERM);
  ASSERT_EQ(daemons_[0]->Wait(), 0);
  ASSERT_TRUE(Ip("-n " + netns_ + " link set eth3-peer down"));
  StartDaemon(0);
  EXPECT_EQ(v1::NicState_Name(state()), "FAILED");
  EXPECT_EQ(Status(0).word(), v1::NODE_DEGRADED);
}

TEST_F(R2ccdLinkTest, ARailThatIsRenumberedIsSeenAtItsNewAddress) {
  StartDaemon(0);
  const auto nic = [&] { return Status(0).nodes(0).nics(0); };
  ASSERT_TRUE(WaitUntil([&] { return nic().address() == "10.77.1.1"; })) << nic().DebugString();
  ASSERT_TRUE(Ip("-n " + netns_ + " address del 10.77.1.1/24 dev eth1") && Ip("-n " + netns_ + " address add 10.77.1.9/24 dev eth1"));
  EXPECT_TRUE(WaitUntil([&] { return nic().address() == "10.77.1.9" && nic().state() == v1::HEALTHY; })) << nic().DebugString();
  EXPECT_FALSE(Events(0, "nic-address").empty());
}

TEST_F(R2ccdLinkTest, ARailThatIsNamedByItsNetworkFollowsItsAddressAndAReloadFindsNothingNew) {
  ASSERT_TRUE(Ip("-n " + netns_ + " address add 10.78.1.1/24 dev eth1"));
  std::string text;
  std::getline(std::ifstream(ConfigFile(0)), text, '\0');
  const std::string by_interface = "interface: \"eth1\"";
  ASSERT_NE(text.find(by_interface), std::string::npos) << text;
  std::ofstream(ConfigFile(0)) << text.replace(text.find(by_interface), by_interface.size(), "address: \"10.77.1.0/24\"");
  StartDaemon(0);
  // NICs that are named by a pattern come after those named one by one.
  const auto nic = [&] { return Status(0).nodes(0).nics(1); };
  ASSERT_TRUE(WaitUntil([&] { return nic().address() == "10.77.1.1"; })) << nic().DebugString();
  const auto reload = [&] {
    grpc::ClientContext context;
    v1::ReloadReply reply;
    const grpc::Status status = Control(0)->Reload(&context, v1::ReloadRequest(), &reply);
    return absl::StrCat(status.error_message(), " ", absl::StrJoin(reply.state().needs_restart(), " "));
  };
  ASSERT_TRUE(Ip("-n " + netns_ + " address del 10.77.1.1/24 dev eth1"));
  EXPECT_EQ(reload(), " ") << "an address that is being changed is no mistake of the file";
  ASSERT_TRUE(Ip("-n " + netns_ + " address add 10.77.1.9/24 dev eth1"));
  EXPECT_TRUE(WaitUntil([&] { return nic().address() == "10.77.1.9" && nic().state() == v1::HEALTHY; })) << nic().DebugString();
  EXPECT_EQ(reload(), " ");
}

TEST_F(R2ccdLinkTest, WithoutAConfigurationItTakesWhatThePluginTakes) {
  daemons_.push_back(std::make_unique<Process>(std::vector<std::string>{"--node", "n0", "--run_dir", RunDir(0), "--state_dir", StateDir(0)},
                                               RunDir(0) + ".log", netns_));
  ASSERT_TRUE(WaitUntil([&] { return Status(0).node() == "n0"; })) << daemons_[0]->log();
  // There is no hardware in the namespace, and eth2 has no address.
  const v1::NodeView own = Status(0).nodes(0);
  ASSERT_EQ(own.nics_size(), 1) << own.DebugString();
  EXPECT_EQ(own.nics(0).name(), "eth1");
}

}  // namespace
}  // namespace r2cc::daemon
