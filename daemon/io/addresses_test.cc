#include "daemon/io/addresses.h"

#include <gtest/gtest.h>

namespace r2cc::daemon {
namespace {

using List = std::vector<std::string>;

TEST(ChooseAddress, TheOneThatItHasStays) {
  EXPECT_EQ(ChooseAddress({"10.0.0.1", "10.0.0.2"}, "10.0.0.2"), "10.0.0.2");
  EXPECT_EQ(ChooseAddress({"10.0.0.1", "2001:db8::1", "fe80::1"}, "2001:db8::1"), "2001:db8::1");
}

TEST(ChooseAddress, AnotherOneIsOfItsFamily) {
  EXPECT_EQ(ChooseAddress({"2001:db8::1", "10.0.0.3", "10.0.0.4"}, "10.0.0.2"), "10.0.0.3");
  EXPECT_EQ(ChooseAddress({"10.0.0.3", "fe80::1", "2001:db8::2"}, "2001:db8::1"), "2001:db8::2");
}

TEST(ChooseAddress, WhileItIsAwayNothingChanges) {
  EXPECT_EQ(ChooseAddress({}, "10.0.0.2"), "10.0.0.2");
  EXPECT_EQ(ChooseAddress({"fe80::1", "2001:db8::1"}, "10.0.0.2"), "10.0.0.2");
  EXPECT_EQ(ChooseAddress({"fe80::1"}, "2001:db8::1"), "2001:db8::1");
}

TEST(ChooseAddress, ALinkLocalOneCountsWhereThereIsNoOther) {
  EXPECT_EQ(ChooseAddress({}, ""), "");
  EXPECT_EQ(ChooseAddress({"fe80::1"}, ""), "fe80::1");
  EXPECT_EQ(ChooseAddress({"fe80::1"}, "fe80::1"), "fe80::1");
  EXPECT_EQ(ChooseAddress({"169.254.0.9", "10.0.0.1"}, "169.254.0.9"), "10.0.0.1");
  EXPECT_EQ(ChooseAddress({"fe80::1", "10.0.0.1"}, "fe80::1"), "10.0.0.1");
  EXPECT_EQ(ChooseAddress({"fe80::1", "10.0.0.1"}, ""), "10.0.0.1");
}

TEST(OsAddresses, TheLoopbackHasItsOwn) {
  const auto map = OsAddresses().ByInterface();
  const auto lo = map.find("lo");
  ASSERT_NE(lo, map.end());
  EXPECT_EQ(ChooseAddress(lo->second, ""), "127.0.0.1");
}

}  // namespace
}  // namespace r2cc::daemon
