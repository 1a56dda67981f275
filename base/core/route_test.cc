#include "base/core/route.h"

#include <gtest/gtest.h>
#include <net/if.h>
#include <sched.h>

#include <cerrno>
#include <cstdlib>
#include <thread>

namespace r2cc {
namespace {

void Shell(const char* command) { EXPECT_EQ(std::system(command), 0) << command; }

std::string Way(const std::string& from, const std::string& to) {
  int failure = 0;
  char name[IF_NAMESIZE] = "";
  const int ifindex = RouteInterface(from, to, &failure);
  EXPECT_EQ(ifindex == 0, failure != 0);
  return if_indextoname(static_cast<unsigned>(ifindex), name) == nullptr ? std::to_string(failure) : name;
}

// Two NICs in one network: the first carries what no rule sends elsewhere.
void CheckTwoInOneNetwork() {
  Shell(
      "ip link set lo up && for i in 0 1; do ip link add eth$i type veth peer name peer$i && ip link set peer$i up && "
      "ip link set eth$i up && ip addr add 10.9.$i.1/16 dev eth$i && ip addr add fd0$i::1/64 dev eth$i nodad; done");
  EXPECT_EQ(Way("10.9.0.1", "10.9.0.2"), "eth0");
  EXPECT_EQ(Way("10.9.1.1", "10.9.1.2"), "eth0");
  Shell("ip rule add from 10.9.1.1 table 101 && ip route add 10.9.0.0/16 dev eth1 table 101");
  EXPECT_EQ(Way("10.9.1.1", "10.9.1.2"), "eth1");
  EXPECT_EQ(Way("fd01::1", "fd01::2"), "eth1");
  EXPECT_EQ(Way("10.9.0.1", "192.0.2.1"), std::to_string(ENETUNREACH));
  EXPECT_EQ(Way("10.9.0.1", "fd01::2"), std::to_string(EAFNOSUPPORT));
  EXPECT_EQ(Way("", "10.9.0.1"), std::to_string(EAFNOSUPPORT));
}

TEST(RouteInterface, AsInTheTables) {
  bool refused = false;
  std::thread([&] {
    refused = unshare(CLONE_NEWNET) != 0;
    if (!refused) CheckTwoInOneNetwork();
  }).join();
  if (refused) GTEST_SKIP() << "needs root: makes a network namespace";
}

}  // namespace
}  // namespace r2cc
