#include "netplugin/transport/tcp/congestion.h"

#include <gtest/gtest.h>

#include <set>

namespace r2cc::net {
namespace {

struct Kernel {
  std::string system;
  std::set<std::string> allowed;

  std::optional<std::string> Choose(const std::string& wanted) {
    return RailCongestionControl(
        wanted, system, [this](const std::string& name) { return allowed.contains(name); }, &error);
  }
  std::string error = {};
};

TEST(RailCongestionControl, IsTheSystemsUnlessThatIsBbr) {
  EXPECT_EQ((Kernel{"cubic", {"cubic", "reno"}}.Choose("")), "");
  EXPECT_EQ((Kernel{"dctcp", {"cubic", "reno"}}.Choose("")), "");
  EXPECT_EQ((Kernel{"", {"cubic", "reno"}}.Choose("")), "");
  EXPECT_EQ((Kernel{"bbr", {"bbr", "cubic", "reno"}}.Choose("")), "cubic");
  EXPECT_EQ((Kernel{"bbr", {"bbr", "reno"}}.Choose("")), "reno");
  EXPECT_EQ((Kernel{"bbr3", {"reno"}}.Choose("")), "reno");
  EXPECT_EQ((Kernel{"bbr", {}}.Choose("")), "");
}

TEST(RailCongestionControl, IsWhatIsAskedFor) {
  EXPECT_EQ((Kernel{"bbr", {"bbr", "reno"}}.Choose("system")), "");
  EXPECT_EQ((Kernel{"cubic", {"bbr", "reno"}}.Choose("bbr")), "bbr");
}

TEST(RailCongestionControl, AMissingAlgorithmIsRefusedByName) {
  Kernel kernel{"cubic", {"reno"}};
  EXPECT_EQ(kernel.Choose("vegas"), std::nullopt);
  EXPECT_EQ(kernel.error,
            "R2CC_TCP_CONGESTION=vegas: not available to this process on this kernel; want system or one of "
            "net.ipv4.tcp_allowed_congestion_control");
}

}  // namespace
}  // namespace r2cc::net
