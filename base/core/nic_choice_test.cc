#include "base/core/nic_choice.h"

#include <gtest/gtest.h>

namespace r2cc {
namespace {

using Positions = std::vector<size_t>;

NicCandidate Nic(const std::string& name, int speed_mbps = 0) {
  return {.name = name, .has_device = true, .has_address = true, .speed_mbps = speed_mbps};
}

TEST(NicChoiceTest, NicsBeforeVirtualOnesBeforeHostedOnes) {
  NicCandidate lo{.name = "lo", .loopback = true, .has_address = true};
  NicCandidate bond{.name = "bond0", .has_address = true};
  NicCandidate docker{.name = "docker0", .has_device = true, .has_address = true};
  NicCandidate bridge{.name = "lan", .bridge = true, .has_device = true, .has_address = true};
  EXPECT_EQ(ChooseNics({lo, bond, docker, Nic("eth0"), Nic("eth1")}), (Positions{3, 4}));
  EXPECT_EQ(ChooseNics({lo, docker, bond}), Positions{2});
  EXPECT_EQ(ChooseNics({lo, docker, bridge}), (Positions{1, 2}));
  EXPECT_EQ(ChooseNics({lo}), Positions());
  EXPECT_EQ(ChooseNics({}), Positions());
}

TEST(NicChoiceTest, InterfacesWithoutAddressOrForManagementAreLeftAlone) {
  NicCandidate bare = Nic("eth9", 100'000);
  bare.has_address = false;
  EXPECT_EQ(ChooseNics({Nic("eno1", 1'000), Nic("eth0", 100'000), Nic("eth1", 10'000), Nic("eth2"), bare}), (Positions{1, 2, 3}));
  EXPECT_EQ(ChooseNics({Nic("eno1", 1'000), bare}), Positions{0}) << "what has no address makes nobody slow";
}

}  // namespace
}  // namespace r2cc
