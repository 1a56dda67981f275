#include "client/doctor/suggest.h"

#include <gtest/gtest.h>

namespace r2cc::client {
namespace {

InterfaceToName Interface(const std::string& name, const std::string& address, int prefix = 24, int64_t megabits = 400'000,
                          bool device = true) {
  InterfaceToName one;
  one.facts.name = name;
  one.facts.up = true;
  if (!address.empty()) one.facts.addresses.push_back({address, prefix, {}});
  one.has_device = device;
  one.megabits = megabits;
  return one;
}

TEST(Suggest, RailsAreNumberedInTheOrderOfTheirNetworks) {
  EXPECT_EQ(SuggestNics({Interface("eth9", "10.0.2.7"), Interface("eth3", "10.0.10.7"), Interface("eth4", "10.0.1.7")}, {}),
            "nics { name: \"rail0\" interface: \"eth4\" }  # 10.0.1.0/24\n"
            "nics { name: \"rail1\" interface: \"eth9\" }  # 10.0.2.0/24\n"
            "nics { name: \"rail2\" interface: \"eth3\" }  # 10.0.10.0/24\n");
}

TEST(Suggest, ANetworkHasTheNameThatOtherNodesGaveIt) {
  const std::vector<NamedNic> others = {
      {"n1", "blue", "10.0.1.1"}, {"n2", "blue", "10.0.1.2"}, {"n3", "green", "10.0.1.3"}, {"n1", "rail0", "10.9.9.9"}};
  EXPECT_EQ(SuggestNics({Interface("eth0", "10.0.1.7"), Interface("eth1", "10.0.2.7")}, others),
            "nics { name: \"blue\" interface: \"eth0\" }  # 10.0.1.0/24, as n1/blue n2/blue n3/green\n"
            "nics { name: \"rail0\" interface: \"eth1\" }  # 10.0.2.0/24\n");
}

TEST(Suggest, LeftOutPartsHaveTheirReason) {
  EXPECT_EQ(SuggestNics({Interface("eth0", "10.0.1.7"), Interface("eno1", "192.168.1.7", 24, 1000),
                         Interface("docker0", "172.17.0.1", 16, 10'000, false), Interface("eth1", ""), Interface("eth2", "fe80::1", 64)},
                        {}),
            "nics { name: \"rail0\" interface: \"eth0\" }  # 10.0.1.0/24\n"
            "# left out: eno1: 1000 Mbit/s is a tenth of the fastest or less: probably a management interface\n"
            "# left out: docker0: no device is behind it\n"
            "# left out: eth1: it has no address that other nodes reach\n"
            "# left out: eth2: it has no address that other nodes reach\n");
  EXPECT_EQ(SuggestNics({}, {}), "# no interface of this machine can be a rail\n");
}

TEST(Suggest, TwoInterfacesOfOneNetworkAreToBeChecked) {
  const std::string text = SuggestNics({Interface("eth0", "10.0.1.7"), Interface("eth1", "10.0.1.8")}, {{"n1", "rail0", "10.0.1.1"}});
  EXPECT_NE(text.find("name: \"rail0\" interface: \"eth0\""), std::string::npos) << text;
  EXPECT_NE(text.find("name: \"rail1\" interface: \"eth1\" }  # 10.0.1.0/24, as n1/rail0; CHECK: the network of eth0 too"),
            std::string::npos)
      << text;
}

TEST(Suggest, NetworksOfBothFamilies) {
  EXPECT_EQ(NetworkOf("10.1.2.3", 20), "10.1.0.0/20");
  EXPECT_EQ(NetworkOf("2001:db8::1:2", 64), "2001:db8::/64");
  EXPECT_EQ(NetworkOf("10.1.2.3", 99), "10.1.2.3/32");
  EXPECT_EQ(NetworkOf("eth0", 24), "");
  EXPECT_EQ(NetworkOf("10.0.0.1", -1), "");
}

}  // namespace
}  // namespace r2cc::client
