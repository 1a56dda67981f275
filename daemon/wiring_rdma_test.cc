// Reports of RDMA devices about the NICs, through the whole daemon.
#include "daemon/wiring_rig.h"

namespace r2cc::daemon {
namespace {

using verbs::AsyncKind;

class WiringRdmaTest : public WiringTest {
 protected:
  WiringRdmaTest() {
    // The sysfs probe finds these; neither names a rate.
    sysfs_.Set("class/net/eth0/ifindex", "1");
    sysfs_.Set("class/net/eth1/ifindex", "2");
    core_.Advance(1000 * kMs);
  }
  v1::NicView Own(int nic) {
    v1::NodeView stored;
    EXPECT_TRUE(stored.ParseFromString(store_->entries().at("/r2cc/nodes/n0")));
    return stored.nics(nic);
  }
};

TEST_F(WiringRdmaTest, TheSpeedOfItsPortIsTheNicsRateAndAChangeOfItAWeight) {
  rdma_.Port("mlx5_0", "eth0", true, 100e9);
  rdma_.Port("mlx5_1", "eth1", true, 100e9);
  core_.Advance(1000 * kMs);
  EXPECT_EQ(Own(0).rate_bits_per_s(), 100'000'000'000u);
  EXPECT_EQ(Weight("n0", "rail1"), 1000);
  rdma_.Port("mlx5_1", "eth1", true, 25e9);
  core_.Advance(1000 * kMs);
  EXPECT_EQ(Weight("n0", "rail0"), 1000);
  EXPECT_EQ(Weight("n0", "rail1"), 250);
  EXPECT_EQ(Own(1).reason(), "link runs at 25 Gbit/s instead of 100 Gbit/s");
}

TEST_F(WiringRdmaTest, AnEventHasTheLinkLookedAtAndADeviceThatIsLostDegrades) {
  rdma_.Port("mlx5_0", "eth0", true);
  core_.Advance(1000 * kMs);
  const int refreshes = links_->refreshes();
  rdma_.Event("mlx5_0", 0, AsyncKind::kDeviceFatal);
  EXPECT_EQ(links_->refreshes(), refreshes + 1);
  rdma_.Ports("mlx5_0", {});
  core_.Advance(100 * kMs);
  EXPECT_EQ(Own(0).state(), v1::DEGRADED);
  EXPECT_EQ(Own(0).reason(), "its RDMA device mlx5_0 is gone");
  rdma_.Port("mlx5_0", "eth0", true);
  core_.Advance(100 * kMs);
  EXPECT_EQ(Own(0).state(), v1::HEALTHY);
}

// The link explains the port: one change of state, not two.
TEST_F(WiringRdmaTest, APulledCableIsOneVerdict) {
  rdma_.Port("mlx5_0", "eth0", true);
  core_.Advance(1000 * kMs);
  rdma_.Event("mlx5_0", 1, AsyncKind::kPortError);
  rdma_.Port("mlx5_0", "eth0", false);
  core_.Advance(5 * kMs);
  links_->Set("eth0", false);
  core_.Advance(1000 * kMs);
  EXPECT_EQ(Own(0).state(), v1::FAILED);
  EXPECT_EQ(Newest("nic-state").from_state(), v1::HEALTHY);
}

}  // namespace
}  // namespace r2cc::daemon
