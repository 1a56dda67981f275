#include "health/io/sysfs_port_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "health/io/fake_sysfs.h"

namespace r2cc::health {
namespace {

using testing::ElementsAre;
using testing::Pair;

FakeSysfs ConnectX() {
  FakeSysfs sysfs;
  sysfs.Set("class/net/eth0/ifindex", "4");
  sysfs.Set("class/net/eth0/carrier_changes", "3");
  sysfs.Set("class/net/eth0/speed", "400000");
  sysfs.Set("class/net/eth0/address", "02:00:00:00:00:01");
  sysfs.Set("class/net/eth0/dev_port", "0");
  sysfs.Set("class/net/eth0/device", "../../../0000:81:00.0");
  sysfs.Set("class/net/eth0/statistics/rx_crc_errors", "7");
  sysfs.Set("class/net/eth0/statistics/rx_dropped", "1000");
  sysfs.Set("class/infiniband/mlx5_0/device", "../../../0000:80:00.0");
  sysfs.Set("class/infiniband/mlx5_1/device", "../../../0000:81:00.0");
  sysfs.Set("class/infiniband/mlx5_1/ports/1/counters/symbol_error", "2");
  return sysfs;
}

TEST(SysfsPortFacts, ReadsEverythingOfAPort) {
  const auto facts = ReadSysfsPortFacts(ConnectX(), "eth0");
  ASSERT_TRUE(facts.ok());
  EXPECT_EQ(facts->ifindex, 4);
  EXPECT_EQ(facts->carrier_changes, 3u);
  EXPECT_EQ(facts->rate_bits_per_s, 400'000'000'000u);
  EXPECT_EQ(facts->mac, "02:00:00:00:00:01");
  EXPECT_EQ(facts->pci, "0000:81:00.0");
  EXPECT_EQ(facts->rdma_device, "mlx5_1");
  EXPECT_THAT(facts->errors, ElementsAre(Pair("rx_crc_errors", 7u), Pair("symbol_error", 2u)));
}

TEST(SysfsPortFacts, TheSecondPortHasItsOwnRdmaCounters) {
  FakeSysfs sysfs = ConnectX();
  sysfs.Set("class/net/eth0/dev_port", "1");
  sysfs.Set("class/infiniband/mlx5_1/ports/2/counters/symbol_error", "9");
  EXPECT_EQ(ReadSysfsPortFacts(sysfs, "eth0")->errors.at("symbol_error"), 9u);
}

TEST(SysfsPortFacts, FieldsThatADownPortDoesNotGiveStayEmpty) {
  FakeSysfs sysfs;
  sysfs.Set("class/net/veth0/ifindex", "9");
  const auto facts = ReadSysfsPortFacts(sysfs, "veth0");
  ASSERT_TRUE(facts.ok());
  EXPECT_EQ(facts->carrier_changes, std::nullopt);
  EXPECT_EQ(facts->rate_bits_per_s, 0u);
  EXPECT_EQ(facts->pci, "");
  EXPECT_TRUE(facts->errors.empty());
}

TEST(SysfsPortFacts, AnUnknownSpeedIsNoSpeed) {
  FakeSysfs sysfs = ConnectX();
  for (const char* speed : {"-1", "4294967295", "", "fast", "99999999999999999999"}) {
    sysfs.Set("class/net/eth0/speed", speed);
    EXPECT_EQ(ReadSysfsPortFacts(sysfs, "eth0")->rate_bits_per_s, 0u) << speed;
  }
}

TEST(SysfsPortFacts, ADeviceThatIsNotOnPciHasNoAddress) {
  FakeSysfs sysfs = ConnectX();
  for (const char* device : {"virtio3", "0000:81:00.00", "0000-81:00.0", "0000:8g:00.0"}) {
    sysfs.Set("class/net/eth0/device", device);
    EXPECT_EQ(ReadSysfsPortFacts(sysfs, "eth0")->pci, "") << device;
    EXPECT_EQ(ReadSysfsPortFacts(sysfs, "eth0")->rdma_device, "") << device;
  }
}

// Fixtures: what nodes look like as a whole.

TEST(SysfsPortFacts, ADgx) {
  const FakeSysfs dgx = FakeSysfs::Load("health/io/testdata/dgx.sysfs");
  const char* const kNics[] = {"ibp24s0", "ibp64s0", "ibp79s0", "ibp94s0", "ibp154s0", "ibp192s0", "ibp206s0", "ibp220s0"};
  for (int i = 0; i < 8; ++i) {
    const auto facts = ReadSysfsPortFacts(dgx, kNics[i]);
    ASSERT_TRUE(facts.ok()) << facts.status();
    EXPECT_EQ(facts->rdma_device, "mlx5_" + std::to_string(i));
    EXPECT_EQ(facts->rdma_port, 1u);
    EXPECT_TRUE(facts->infiniband);
    EXPECT_EQ(facts->rdma_active, true);
    EXPECT_EQ(facts->rate_bits_per_s, 400'000'000'000u);
    EXPECT_EQ(facts->lid, 16 + i);
    EXPECT_EQ(facts->sm_lid, 1);
    EXPECT_EQ(facts->errors.at("symbol_error"), 0u);
    EXPECT_EQ(facts->errors.at("local_ack_timeout_err"), 0u);
    EXPECT_FALSE(facts->errors.contains("out_of_buffer")) << "a slow receiver is no fault of the NIC";
    const auto again = ReadInfinibandFacts(dgx, facts->port_guid);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(again->rdma_device, facts->rdma_device);
    EXPECT_EQ(again->pci, facts->pci);
    EXPECT_EQ(again->ifindex, 0);
  }
  EXPECT_EQ(ReadSysfsPortFacts(dgx, "ibp24s0")->port_guid, 0xa088c20300181000u);
}

TEST(SysfsPortFacts, TwoRocePortsOfOneCard) {
  const FakeSysfs dgx = FakeSysfs::Load("health/io/testdata/dgx.sysfs");
  for (const int port : {0, 1}) {
    const auto facts = ReadSysfsPortFacts(dgx, "ens6f" + std::to_string(port) + "np" + std::to_string(port));
    ASSERT_TRUE(facts.ok()) << facts.status();
    EXPECT_EQ(facts->pci, "0000:29:00." + std::to_string(port));
    EXPECT_EQ(facts->rdma_device, "mlx5_" + std::to_string(8 + port));
    EXPECT_FALSE(facts->infiniband);
    EXPECT_EQ(facts->port_guid, 0u) << "a RoCE GID is made of the MAC";
    EXPECT_EQ(facts->packets, 900u + 800 + 1000 + 1005);
    EXPECT_EQ(facts->errors.at("roce_adp_retrans"), 0u);
  }
}

TEST(SysfsPortFacts, ABondIsItsMembers) {
  const auto facts = ReadSysfsPortFacts(FakeSysfs::Load("health/io/testdata/bond.sysfs"), "bond0");
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_THAT(facts->bond_members, ElementsAre("ens6f0np0", "ens6f1np1"));
  EXPECT_EQ(facts->rate_bits_per_s, 400'000'000'000u) << "the bond's own speed, not that of a port";
  EXPECT_EQ(facts->pci, "0000:29:00.0");
  EXPECT_EQ(facts->rdma_device, "mlx5_bond_0");
}

TEST(SysfsPortFacts, AnOlderCardHasTwoPortsOnOneFunction) {
  const FakeSysfs card = FakeSysfs::Load("health/io/testdata/two_ports.sysfs");
  const auto first = ReadSysfsPortFacts(card, "eth2"), second = ReadSysfsPortFacts(card, "eth3");
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->rdma_device, second->rdma_device);
  EXPECT_EQ(first->rdma_port, 1u);
  EXPECT_EQ(second->rdma_port, 2u);
  EXPECT_EQ(first->rdma_active, true);
  EXPECT_EQ(second->rdma_active, false);
  EXPECT_EQ(second->rdma_state, "DOWN");
  EXPECT_EQ(second->rate_bits_per_s, 0u) << "the rate of a port that is down means nothing";
}

TEST(SysfsPortFacts, AGuidIsReadInBothForms) {
  EXPECT_EQ(ParseGuid("0x0002c9030000abcd"), 0x0002c9030000abcdu);
  EXPECT_EQ(ParseGuid("0002:c903:0000:abcd"), 0x0002c9030000abcdu);
  for (const char* text : {"", "0x", "0002:c903:0000", "0002:c903:0000:abcg", "0x0002c9030000abcd0", "-002c9030000abcd"})
    EXPECT_EQ(ParseGuid(text), 0u) << text;
}

TEST(SysfsPortFacts, AnInfinibandPortThatIsNotThere) {
  EXPECT_TRUE(absl::IsNotFound(ReadInfinibandFacts(FakeSysfs::Load("health/io/testdata/dgx.sysfs"), 1).status()));
  EXPECT_TRUE(absl::IsNotFound(ReadInfinibandFacts(FakeSysfs(), 1).status()));
}

// They go into reasons, and these to other daemons: a message with anything but UTF-8 is refused there whole.
TEST(SysfsPortFacts, ADriversTextIsPrintable) {
  FakeSysfs sysfs = ConnectX();
  sysfs.Set("class/net/eth0/address", "\xff:\xff");
  sysfs.Set("class/infiniband/mlx5_1/ports/1/state", "1: DO\x01\xc3N");
  const auto facts = ReadSysfsPortFacts(sysfs, "eth0");
  ASSERT_TRUE(facts.ok());
  EXPECT_EQ(facts->mac, "?:?");
  EXPECT_EQ(facts->rdma_state, "DO??N");
}

TEST(SysfsPortFacts, NoSuchInterface) {
  EXPECT_TRUE(absl::IsNotFound(ReadSysfsPortFacts(ConnectX(), "eth1").status()));
  for (const char* name : {"", ".", "..", "../infiniband", "eth0/statistics"})
    EXPECT_TRUE(absl::IsInvalidArgument(ReadSysfsPortFacts(ConnectX(), name).status())) << name;
}

// The machine's own loopback interface: the names that the kernel uses are the ones read here.
TEST(SysfsPortFacts, TheRealLoopback) {
  const auto facts = ReadSysfsPortFacts(RealSysfs(), "lo");
  if (!facts.ok()) GTEST_SKIP() << "needs sysfs: /sys/class/net/lo is not visible here";
  EXPECT_GT(facts->ifindex, 0);
  EXPECT_EQ(facts->mac, "00:00:00:00:00:00");
  EXPECT_TRUE(facts->errors.contains("rx_errors"));
  EXPECT_TRUE(facts->carrier_changes.has_value());
}

}  // namespace
}  // namespace r2cc::health
