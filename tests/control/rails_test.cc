#include "tests/control/rails.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace r2cc::control {
namespace {

Interface Make(const char* name, const char* address, bool usable) {
  Interface interface;
  interface.name = name;
  interface.address.sin_family = AF_INET;
  inet_pton(AF_INET, address, &interface.address.sin_addr);
  interface.usable = usable;
  return interface;
}

const std::vector<Interface>& Interfaces() {
  static const auto* interfaces = new std::vector<Interface>{Make("lo", "127.0.0.1", false), Make("eth0", "10.0.0.1", true),
                                                             Make("eth1", "10.0.1.1", true), Make("eth2", "10.0.2.1", false)};
  return *interfaces;
}

std::string Names(const std::string& text) {
  std::vector<Rail> rails;
  std::string error;
  if (!ParseRails(text, Interfaces(), &rails, &error)) return error;
  std::string names;
  for (const Rail& rail : rails) names += rail.name + "@" + inet_ntoa(rail.address.sin_addr) + (rail.interface.empty() ? " " : "! ");
  return names;
}

TEST(RailsTest, NamedOnesInTheirOrderUpOrDown) { EXPECT_EQ(Names("eth2,eth0"), "eth2@10.0.2.1! eth0@10.0.0.1! "); }
TEST(RailsTest, AddressesAreNotBoundToADevice) { EXPECT_EQ(Names("127.0.0.1,127.0.0.2"), "127.0.0.1@127.0.0.1 127.0.0.2@127.0.0.2 "); }
TEST(RailsTest, UnsetMeansEveryUsableOne) { EXPECT_EQ(Names(""), "eth0@10.0.0.1! eth1@10.0.1.1! "); }
TEST(RailsTest, ExclusionsAlone) { EXPECT_EQ(Names("^eth0"), "eth1@10.0.1.1! "); }
TEST(RailsTest, UnknownIsNamed) { EXPECT_EQ(Names("eth0,eth9"), "R2CC_RAILS: there is no interface 'eth9' with an IPv4 address here"); }
TEST(RailsTest, NothingLeft) { EXPECT_EQ(Names("^eth0,^eth1"), "R2CC_RAILS: no usable interface is left; name interfaces or addresses"); }
TEST(RailsTest, ThisMachineHasALoopback) {
  bool found = false;
  for (const Interface& interface : ListInterfaces()) found = found || interface.address.sin_addr.s_addr == htonl(INADDR_LOOPBACK);
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace r2cc::control
