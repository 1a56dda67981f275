#include "base/core/interfaces.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

namespace r2cc {
namespace {

using Kind = NetEvent::Kind;

NetEvent Link(int ifindex, const std::string& name) {
  NetEvent event;
  event.kind = Kind::kLink;
  event.ifindex = ifindex;
  event.name = name;
  return event;
}

NetEvent Address(int ifindex, const std::string& address, AddressState state = {}) {
  NetEvent event;
  event.kind = Kind::kAddressAdded;
  event.ifindex = ifindex;
  event.address = address;
  event.prefix_bits = 24;
  event.state = state;
  return event;
}

TEST(InterfacesOf, ByIndexWithAddressesInTheKernelsOrder) {
  const std::vector<NetEvent> events = {Link(7, "eth1"),        Link(2, "eth0"),        Address(7, "10.0.1.1"),
                                        Address(7, "10.0.1.2"), Address(9, "10.0.9.1"), Address(2, "fd00::1", {.duplicate = true})};
  const std::vector<Interface> interfaces = InterfacesOf(events);
  ASSERT_EQ(interfaces.size(), 2u) << "9 was made between the two dumps";
  EXPECT_EQ(interfaces[0].name, "eth0");
  EXPECT_TRUE(interfaces[0].addresses.at(0).state.duplicate);
  EXPECT_EQ(interfaces[1].name, "eth1");
  ASSERT_EQ(interfaces[1].addresses.size(), 2u);
  EXPECT_EQ(interfaces[1].addresses[1].text, "10.0.1.2");
  EXPECT_EQ(interfaces[1].addresses[1].prefix_bits, 24);
}

void Shell(const char* command) { EXPECT_EQ(std::system(command), 0) << command; }

const Interface* Named(const std::vector<Interface>& interfaces, const std::string& name) {
  const auto it = std::find_if(interfaces.begin(), interfaces.end(), [&](const Interface& one) { return one.name == name; });
  return it == interfaces.end() ? nullptr : &*it;
}

// Waits for the kernel's search for duplicates, which takes a second or two.
const InterfaceAddress* Settled(const std::string& name, std::vector<Interface>* interfaces) {
  std::string error;
  const auto changes = NetlinkSocket::Open(&error);
  for (int i = 0; i < 100 && changes != nullptr; ++i) {
    *interfaces = ReadInterfaces();
    for (const InterfaceAddress& address : Named(*interfaces, name)->addresses)
      if (address.text == "fd00::9" && (address.state.duplicate || !address.state.tentative)) return &address;
    pollfd changed{changes->fd(), POLLIN, 0};
    poll(&changed, 1, 100);
    std::vector<NetEvent> events;
    changes->Receive(&events);
  }
  return nullptr;
}

void CheckKernel() {
  Shell(
      "ip link set lo up && ip link add eth0 type veth peer name eth1 && "
      "ip link property add dev eth0 altname enp3s0 altname a-name-longer-than-fifteen-characters && ip addr add 10.9.0.1/23 dev eth0 && "
      "ip addr add 10.99.0.1/32 dev lo && ip link set eth0 up && ip link set eth1 up && "
      "ip addr add 10.9.8.1/24 dev eth1 valid_lft 1000 preferred_lft 0 && "
      "ip addr add fd00::9/64 dev eth1 nodad && ip addr add fd00::9/64 dev eth0");
  std::vector<Interface> interfaces;
  const InterfaceAddress* const twice = Settled("eth0", &interfaces);
  ASSERT_NE(twice, nullptr);
  EXPECT_TRUE(twice->state.duplicate);
  const Interface* const eth0 = Named(interfaces, "eth0");
  EXPECT_EQ(eth0->other_names, (std::vector<std::string>{"enp3s0", "a-name-longer-than-fifteen-characters"}));
  EXPECT_EQ(eth0->addresses.at(0).text, "10.9.0.1");
  EXPECT_EQ(eth0->addresses.at(0).prefix_bits, 23);
  EXPECT_EQ(eth0->addresses.at(0).state, AddressState{});
  EXPECT_TRUE(eth0->admin_up);
  EXPECT_TRUE(eth0->carrier_up);
  EXPECT_FALSE(eth0->dummy);
  EXPECT_TRUE(Named(interfaces, "eth1")->addresses.at(0).state.deprecated);
  const Interface* const lo = Named(interfaces, "lo");
  ASSERT_NE(lo, nullptr);
  EXPECT_TRUE(lo->loopback);
  EXPECT_EQ(lo->addresses.at(1).text, "10.99.0.1");
}

TEST(ReadInterfaces, AsTheKernelHasThem) {
  bool refused = false;
  std::thread([&] {
    refused = unshare(CLONE_NEWNET) != 0;
    if (!refused) CheckKernel();
  }).join();
  if (refused) GTEST_SKIP() << "needs root: makes a network namespace";
}

}  // namespace
}  // namespace r2cc
