#include "daemon/io/listen_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace r2cc::daemon {
namespace {

TEST(ListenAddress, ANameThatIsThisMachineAloneIsAnAlarm) {
  EXPECT_THAT(LoopbackAlarm("node0", "127.0.1.1"), testing::HasSubstr("listen names node0, which is 127.0.1.1 here"));
  EXPECT_NE(LoopbackAlarm("node0", "::1"), "");
}

TEST(ListenAddress, AnIntendedAddressRaisesNoAlarm) {
  EXPECT_EQ(LoopbackAlarm("127.0.0.1", "127.0.0.1"), "");
  EXPECT_EQ(LoopbackAlarm("::1", "::1"), "");
  EXPECT_EQ(LoopbackAlarm("localhost", "127.0.0.1"), "");
  EXPECT_EQ(LoopbackAlarm("0.0.0.0", "0.0.0.0"), "");
  EXPECT_EQ(LoopbackAlarm("node0", "10.0.0.1"), "");
  EXPECT_EQ(LoopbackAlarm("node0", ""), "");
}

TEST(ListenAddress, NumericAddressesNeedNoNameServer) {
  EXPECT_EQ(FirstAddressOf("127.0.0.7"), "127.0.0.7");
  EXPECT_EQ(FirstAddressOf("::1"), "::1");
  EXPECT_EQ(FirstAddressOf("256.1.1.1."), "");
}

}  // namespace
}  // namespace r2cc::daemon
