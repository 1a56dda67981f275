#include "base/core/address_choice.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace r2cc {
namespace {

constexpr AddressState kDuplicate{.duplicate = true, .tentative = true};  // as the kernel reports it
constexpr AddressState kTentative{.tentative = true};
constexpr AddressState kDeprecated{.deprecated = true};

TEST(AddressChoiceTest, Kinds) {
  for (const char* address : {"169.254.0.0", "169.254.3.1", "169.254.255.255", "fe80::1", "febf::1"})
    EXPECT_TRUE(IsLinkLocal(address)) << address;
  for (const char* address : {"169.253.1.1", "169.255.1.1", "10.169.254.1", "fec0::1", "fd00::1", "", "eth0"})
    EXPECT_FALSE(IsLinkLocal(address)) << address;
  for (const char* address : {"127.0.0.1", "127.0.1.1", "::1"}) EXPECT_TRUE(IsLoopback(address)) << address;
  for (const char* address : {"128.0.0.1", "10.127.0.0", "::2", "::", ""}) EXPECT_FALSE(IsLoopback(address)) << address;
}

// From the best to the worst.
TEST(AddressChoiceTest, Order) {
  const std::vector<std::pair<const char*, AddressState>> order = {
      {"10.0.0.1", {}},    {"fd00::1", {}}, {"10.0.0.2", kDeprecated}, {"fd00::2", kTentative},
      {"169.254.3.1", {}}, {"fe80::1", {}}, {"fe80::2", kTentative},   {"127.0.0.1", {}},
  };
  for (size_t i = 0; i + 1 < order.size(); ++i)
    EXPECT_GT(AddressRank(order[i].first, order[i].second), AddressRank(order[i + 1].first, order[i + 1].second)) << order[i].first;
  EXPECT_GT(AddressRank("127.0.0.1", {}), 0);
  EXPECT_EQ(AddressRank("fd00::3", kDuplicate), 0);
  EXPECT_EQ(AddressRank("fd00::3", {.duplicate = true}), 0);
  EXPECT_EQ(AddressRank("fe80::3", kDuplicate), 0);
}

TEST(AddressChoiceTest, ConditionsOfAnInterfaceToBeChosen) {
  EXPECT_TRUE(IsRoutable("10.0.0.1", {}));
  EXPECT_TRUE(IsRoutable("fd00::1", {}));
  EXPECT_TRUE(IsRoutable("fd00::1", kTentative)) << "a node that has just started";
  EXPECT_TRUE(IsRoutable("fd00::1", kDeprecated));
  EXPECT_FALSE(IsRoutable("fd00::1", kDuplicate));
  EXPECT_FALSE(IsRoutable("169.254.3.1", {})) << "the USB NIC of a BMC has the same one on every node";
  EXPECT_FALSE(IsRoutable("fe80::1", {}));
  EXPECT_FALSE(IsRoutable("127.0.0.1", {}));
}

}  // namespace
}  // namespace r2cc
