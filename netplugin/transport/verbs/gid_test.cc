#include "netplugin/transport/verbs/gid.h"

#include <gtest/gtest.h>

#include <vector>

namespace r2cc::net::verbs {
namespace {

GidEntry Entry(uint32_t index, const std::string& address, GidType type = GidType::kRoceV2, uint32_t interface_index = 3) {
  return {index, *GidOf(*ParseIpAddress(address)), type, interface_index};
}
uint32_t Chosen(const std::vector<GidEntry>& entries, const GidWish& wish) {
  const auto chosen = ChooseGid(entries, wish);
  return chosen ? chosen->index : UINT32_MAX;
}

TEST(Gid, TheRailsOwnAddressFirst) {
  const std::vector<GidEntry> entries = {Entry(0, "fe80::1"), Entry(1, "10.0.0.1", GidType::kRoceV1), Entry(2, "10.0.0.1"),
                                         Entry(3, "10.0.0.2"), Entry(4, "2001:db8::1")};
  EXPECT_EQ(Chosen(entries, {.address = *ParseIpAddress("10.0.0.2")}), 3u);
  EXPECT_EQ(Chosen(entries, {.address = *ParseIpAddress("2001:db8::1")}), 4u);
  EXPECT_EQ(Chosen(entries, {.address = *ParseIpAddress("10.0.0.9")}), 2u);  // gone: one of the family
  EXPECT_EQ(Chosen(entries, {.address = *ParseIpAddress("2001:db8::9")}), 4u);
  EXPECT_EQ(Chosen(entries, {}), 2u);
}

TEST(Gid, LinkLocalLastAndOfTheInterface) {
  EXPECT_EQ(Chosen({Entry(0, "fe80::1"), Entry(1, "2001:db8::1")}, {.address = *ParseIpAddress("10.0.0.1")}), 1u);
  EXPECT_EQ(Chosen({Entry(0, "fe80::1")}, {}), 0u);
  const std::vector<GidEntry> two = {Entry(0, "10.0.0.1", GidType::kRoceV2, 3), Entry(1, "10.1.0.1", GidType::kRoceV2, 4)};
  EXPECT_EQ(Chosen(two, {.interface_index = 4}), 1u);
  EXPECT_EQ(Chosen(two, {.interface_index = 3}), 0u);
}

TEST(Gid, ChoosesTheRightTypeOrNone) {
  const std::vector<GidEntry> old = {Entry(0, "10.0.0.1", GidType::kRoceV1)};
  EXPECT_FALSE(ChooseGid(old, {}).has_value());
  EXPECT_FALSE(ChooseGid({}, {}).has_value());
  EXPECT_FALSE(ChooseGid(std::vector{GidEntry{.type = GidType::kRoceV2}}, {}).has_value());
  GidEntry infiniband{.index = 0, .gid = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 1}, .type = GidType::kInfiniBand};
  EXPECT_EQ(Chosen({infiniband, Entry(1, "10.0.0.1")}, {.link_layer = LinkLayer::kInfiniBand}), 0u);
}

TEST(Gid, IsText) {
  EXPECT_EQ(TextOf(Entry(0, "10.0.0.1").gid), "10.0.0.1");
  EXPECT_EQ(TextOf(Entry(0, "2001:db8::1").gid), "2001:db8::1");
}

}  // namespace
}  // namespace r2cc::net::verbs
