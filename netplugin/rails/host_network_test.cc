#include "netplugin/rails/host_network.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <thread>

#include "netplugin/rails/link_monitor.h"
#include "netplugin/rails/rails.h"

namespace r2cc::net {
namespace {

const HostInterface* Find(const std::vector<HostInterface>& interfaces, const std::string& name) {
  for (const HostInterface& interface : interfaces)
    if (interface.name == name) return &interface;
  return nullptr;
}

TEST(SystemHostNetwork, KnowsTheLoopback) {
  SystemHostNetwork host;
  const std::vector<HostInterface> interfaces = host.Interfaces();
  const HostInterface* lo = Find(interfaces, "lo");
  ASSERT_NE(lo, nullptr);
  EXPECT_TRUE(lo->loopback);
  EXPECT_GT(lo->ifindex, 0);
  EXPECT_EQ(lo->device_path, "");
  EXPECT_NE(host.NetnsInode(), 0u);
}

TEST(SystemHostNetwork, BelievesSysfsOnlyAboutTheSameInterface) {
  const std::vector<HostInterface> real = SystemHostNetwork().Interfaces();
  const HostInterface* lo = Find(real, "lo");
  ASSERT_NE(lo, nullptr);
  const std::string root = std::string(std::getenv("TEST_TMPDIR")) + "/sys" + std::to_string(getpid());
  const std::string folder = root + "/class/net/lo";
  for (const std::string& path : {root, root + "/class", root + "/class/net", folder, folder + "/bridge", folder + "/device"})
    ASSERT_EQ(mkdir(path.c_str(), 0755), 0) << path;
  std::ofstream(folder + "/speed") << "25000\n";
  std::ofstream(folder + "/ifindex") << lo->ifindex + 1 << "\n";
  const std::vector<HostInterface> foreign = SystemHostNetwork(root).Interfaces();
  EXPECT_EQ(Find(foreign, "lo")->speed_mbps, 0);
  EXPECT_EQ(Find(foreign, "lo")->device_path, "");
  EXPECT_FALSE(Find(foreign, "lo")->bridge);
  std::ofstream(folder + "/ifindex") << lo->ifindex << "\n";
  const std::vector<HostInterface> own = SystemHostNetwork(root).Interfaces();
  EXPECT_EQ(Find(own, "lo")->speed_mbps, 25000);
  EXPECT_NE(Find(own, "lo")->device_path, "");
  EXPECT_TRUE(Find(own, "lo")->bridge);
  std::ofstream(folder + "/speed") << "-1\n";
  EXPECT_EQ(Find(SystemHostNetwork(root).Interfaces(), "lo")->speed_mbps, 0);
}

void Shell(const char* command) { EXPECT_EQ(std::system(command), 0) << command; }

// The changes that come within ten seconds, until there is one for `rail` with that reason.
bool Comes(LinkMonitor& monitor, int rail, const std::string& reason) {
  std::vector<RailLinkEvent> events;
  for (int i = 0; i < 1000; ++i) {
    monitor.Poll(&events);
    for (const RailLinkEvent& event : events)
      if (event.rail == rail && event.reason == reason) return true;
    pollfd wait{monitor.fd(), POLLIN, 0};
    poll(&wait, 1, 10);
  }
  return false;
}

void CheckVethRails() {
  Shell(
      "ip link set lo up && for i in 0 1 2; do ip link add rail$i type veth peer name peer$i && ip link set peer$i up && "
      "ip link set rail$i up && ip addr add 10.9.$i.1/24 dev rail$i; done && ip link set rail2 down");
  SystemHostNetwork host;
  std::vector<Rail> rails;
  std::string error;
  ASSERT_TRUE(ResolveRails("rail0,10.9.1.1,rail2,127.0.0.3", host, {}, &rails, &error)) << error;
  ASSERT_EQ(rails.size(), 4u);
  EXPECT_EQ(rails[0].address.text, "10.9.0.1");
  EXPECT_EQ(rails[1].interface, "rail1");
  EXPECT_TRUE(rails[0].up);
  EXPECT_TRUE(rails[1].up);
  EXPECT_FALSE(rails[2].up);
  EXPECT_TRUE(rails[3].up);
  EXPECT_NE(rails[0].guid, rails[1].guid);

  EXPECT_TRUE(host.AnswersForOthers("rail0"));
  Shell("echo 1 > /proc/sys/net/ipv4/conf/rail0/arp_ignore");
  EXPECT_FALSE(host.AnswersForOthers("rail0"));
  EXPECT_TRUE(host.AnswersForOthers("rail1"));
  Shell("echo 1 > /proc/sys/net/ipv4/conf/all/arp_filter");
  EXPECT_FALSE(host.AnswersForOthers("rail1"));
  EXPECT_EQ(host.RouteInterface(rails[0].address, "10.9.0.2"), rails[0].ifindex);

  auto monitor = LinkMonitor::Create(rails, &error);
  ASSERT_NE(monitor, nullptr) << error;
  Shell("ip link set rail0 down");
  EXPECT_TRUE(Comes(*monitor, 0, "interface down"));
  Shell("ip link set peer1 down");
  EXPECT_TRUE(Comes(*monitor, 1, "no carrier"));
  Shell("ip link set rail0 up");
  EXPECT_TRUE(Comes(*monitor, 0, "up"));
  Shell("ip link set rail2 up");
  EXPECT_TRUE(Comes(*monitor, 2, "up"));
  Shell("ip addr del 10.9.2.1/24 dev rail2");
  EXPECT_TRUE(Comes(*monitor, 2, "address removed"));
  Shell("ip link del rail0");
  EXPECT_TRUE(Comes(*monitor, 0, "interface down"));  // the kernel downs what it removes
}

TEST(LinkMonitor, FollowsVethRails) {
  bool refused = false;
  std::thread([&] {
    refused = unshare(CLONE_NEWNET) != 0;
    if (!refused) CheckVethRails();
  }).join();
  if (refused) GTEST_SKIP() << "needs root: makes a network namespace";
}

TEST(LinkMonitor, FindsWhatChangedBeforeItWasMade) {
  bool refused = false;
  std::thread([&] {
    refused = unshare(CLONE_NEWNET) != 0;
    if (refused) return;
    Shell(
        "ip link add rail0 type veth peer name peer0 && ip link set peer0 up && ip link set rail0 up && ip addr add 10.9.0.1/24 dev rail0");
    SystemHostNetwork host;
    std::vector<Rail> rails;
    std::string error;
    ASSERT_TRUE(ResolveRails("rail0", host, {}, &rails, &error)) << error;
    Shell("ip link set rail0 down");
    auto monitor = LinkMonitor::Create(rails, &error);
    ASSERT_NE(monitor, nullptr) << error;
    EXPECT_TRUE(Comes(*monitor, 0, "interface down"));
  }).join();
  if (refused) GTEST_SKIP() << "needs root: makes a network namespace";
}

}  // namespace
}  // namespace r2cc::net
