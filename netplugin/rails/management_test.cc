#include "netplugin/rails/management.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "netplugin/rails/fake_host_network.h"

namespace r2cc::net {
namespace {

using testing::ElementsAre;
using testing::StartsWith;

class ManagementTest : public testing::Test {
 protected:
  ManagementTest() {
    for (int i = 0; i < 3; ++i)
      host_.AddNic("eth" + std::to_string(i), "0000:2" + std::to_string(i) + ":00.0", {"10." + std::to_string(i) + ".0.1"});
    host_.leaves_by = [](const std::string&) { return 1; };
  }
  std::vector<std::string> Warnings(const std::string& spec) {
    std::vector<Rail> rails;
    std::vector<std::string> warnings;
    std::string error;
    EXPECT_TRUE(ResolveRails(spec, host_, {}, &rails, &error, &warnings)) << error;
    return warnings;
  }

  FakeHostNetwork host_;
};

TEST_F(ManagementTest, TheRailWithTheDefaultRouteThatNobodyNamed) {
  EXPECT_THAT(Warnings(""), ElementsAre("R2CC: rail eth0 has this node's default route, so it may be the management network, and carries a "
                                        "part of all data: name the rails in R2CC_RAILS or in r2ccd's nics, or leave it out "
                                        "(R2CC_RAILS=^eth0)"));
  host_.Add("eth3", {"10.3.0.1"}).device_path = "/sys/devices/pci0000:00/0000:23:00.0";
  EXPECT_THAT(Warnings("^eth3"), ElementsAre(StartsWith("R2CC: rail eth0 has this node's default route")));
}

TEST_F(ManagementTest, NoWarningIfTheRailsNameIt) { EXPECT_THAT(Warnings("eth0,eth1"), ElementsAre()); }

TEST_F(ManagementTest, WithoutADefaultRouteOrWithOneForEachThereIsNone) {
  host_.leaves_by = [](const std::string&) { return 0; };
  EXPECT_THAT(Warnings(""), ElementsAre());
  host_.leaves_by = [](const std::string& from) { return from[3] - '0' + 1; };
  EXPECT_THAT(Warnings(""), ElementsAre()) << "a routing table for each";
  host_.leaves_by = [](const std::string&) { return 9; };
  EXPECT_THAT(Warnings(""), ElementsAre()) << "it is no rail";
  host_.leaves_by = [](const std::string&) { return 2; };
  EXPECT_THAT(Warnings("^eth0,eth2"), ElementsAre()) << "it is the only rail";
}

}  // namespace
}  // namespace r2cc::net
