// NICs whose interfaces get other addresses while the daemon runs.
#include "daemon/wiring_rig.h"

namespace r2cc::daemon {
namespace {

TEST_F(WiringTest, AnInterfaceThatGetsAnotherAddressIsProbedAndReportedThere) {
  const auto own = [&](int nic) {
    v1::NodeView stored;
    EXPECT_TRUE(stored.ParseFromString(store_->entries().at("/r2cc/nodes/n0")));
    return stored.nics(nic);
  };
  wiring_->SetPeerAddress("0.0.0.0:7460");
  sysfs_.Set("class/net/eth0/ifindex", "1");
  core_.Advance(3000 * kMs);
  EXPECT_EQ(own(0).address(), "10.0.0.1");
  // An address is away for a moment when it is changed.
  addresses_.Set({{"eth0", {}}, {"eth1", {"10.0.1.1"}}});
  core_.Advance(3000 * kMs);
  EXPECT_EQ(own(0).address(), "10.0.0.1");
  addresses_.Set({{"eth0", {"fe80::7", "10.0.0.7"}}, {"eth1", {"10.0.1.1"}}});
  core_.Advance(3000 * kMs);
  EXPECT_EQ(own(0).address(), "10.0.0.7");
  EXPECT_EQ(own(1).address(), "10.0.1.1");
  EXPECT_EQ(own(2).address(), "127.0.0.9");
  EXPECT_EQ(Newest("nic-address").nic(), "rail0");
  EXPECT_EQ(Newest("nic-address").message(), "it has another address: 10.0.0.7");
  EXPECT_EQ(Weight("n0", "rail0"), 1000);
  const auto port = static_cast<uint16_t>(own(0).probe_port());
  EXPECT_NE(port, 0);
  EXPECT_TRUE(net_.IsOpen({"10.0.0.7", port}));
  EXPECT_FALSE(net_.IsOpen({"10.0.0.1", port}));
}

class NetworkTest : public testing::Test, protected FakeWorld {
 protected:
  void TearDown() override { wiring_.reset(); }
  std::string OwnAddress() {
    core_.Advance(3000 * kMs);
    v1::NodeView stored;
    EXPECT_TRUE(stored.ParseFromString(store_->entries().at("/r2cc/nodes/n0")));
    // A NIC that is named by a network comes after the others.
    EXPECT_EQ(stored.nics(1).name(), "rail0");
    return stored.nics(1).address();
  }
};

TEST_F(NetworkTest, ANicThatIsNamedByItsNetworkFollowsItsAddressThere) {
  addresses_.Set({{"eth0", {"10.9.0.1", "10.0.0.1"}}, {"eth1", {"10.0.1.1"}}});
  MakeDaemon(R"(node: "n0" nics { name: "rail0" address: "10.0.0.0/24" } nics { name: "rail1" address: "10.0.1.1" })", 1000);
  wiring_->SetPeerAddress("0.0.0.0:7460");
  sysfs_.Set("class/net/eth0/ifindex", "1");
  EXPECT_EQ(OwnAddress(), "10.0.0.1");
  addresses_.Set({{"eth0", {"10.9.0.1"}}, {"eth1", {"10.0.1.2"}}});
  EXPECT_EQ(OwnAddress(), "10.0.0.1") << "the other one is of another network";
  addresses_.Set({{"eth0", {"10.9.0.1", "10.0.0.8"}}, {"eth1", {"10.0.1.2"}}});
  EXPECT_EQ(OwnAddress(), "10.0.0.8");
}

TEST_F(WiringTest, ListeningWhereNobodyComesIsAnAlarm) {
  EXPECT_EQ(Status().alarms_size(), 0);
  wiring_->SetListenAlarm("no other node reaches this one");
  ASSERT_EQ(Status().alarms_size(), 1);
  EXPECT_EQ(Status().alarms(0), "no other node reaches this one");
}

}  // namespace
}  // namespace r2cc::daemon
