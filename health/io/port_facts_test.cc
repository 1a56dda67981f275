#include "health/io/port_facts.h"

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
  sysfs.Set("class/net/eth0/operstate", "up");
  sysfs.Set("class/net/eth0/carrier", "1");
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

TEST(PortFacts, ReadsEverythingOfAPort) {
  const auto facts = ReadPortFacts(ConnectX(), "eth0");
  ASSERT_TRUE(facts.ok());
  EXPECT_EQ(facts->ifindex, 4);
  EXPECT_EQ(facts->operstate, "up");
  EXPECT_EQ(facts->carrier, true);
  EXPECT_EQ(facts->carrier_changes, 3u);
  EXPECT_EQ(facts->rate_bits_per_s, 400'000'000'000u);
  EXPECT_EQ(facts->mac, "02:00:00:00:00:01");
  EXPECT_EQ(facts->pci, "0000:81:00.0");
  EXPECT_EQ(facts->rdma_device, "mlx5_1");
  EXPECT_THAT(facts->errors, ElementsAre(Pair("rx_crc_errors", 7u), Pair("symbol_error", 2u)));
}

TEST(PortFacts, TheSecondPortHasItsOwnRdmaCounters) {
  FakeSysfs sysfs = ConnectX();
  sysfs.Set("class/net/eth0/dev_port", "1");
  sysfs.Set("class/infiniband/mlx5_1/ports/2/counters/symbol_error", "9");
  EXPECT_EQ(ReadPortFacts(sysfs, "eth0")->errors.at("symbol_error"), 9u);
}

TEST(PortFacts, WhatADownPortDoesNotSayStaysEmpty) {
  FakeSysfs sysfs;
  sysfs.Set("class/net/veth0/ifindex", "9");
  const auto facts = ReadPortFacts(sysfs, "veth0");
  ASSERT_TRUE(facts.ok());
  EXPECT_EQ(facts->carrier, std::nullopt);
  EXPECT_EQ(facts->carrier_changes, std::nullopt);
  EXPECT_EQ(facts->rate_bits_per_s, 0u);
  EXPECT_EQ(facts->pci, "");
  EXPECT_TRUE(facts->errors.empty());
}

TEST(PortFacts, AnUnknownSpeedIsNoSpeed) {
  FakeSysfs sysfs = ConnectX();
  for (const char* speed : {"-1", "4294967295", "", "fast", "99999999999999999999"}) {
    sysfs.Set("class/net/eth0/speed", speed);
    EXPECT_EQ(ReadPortFacts(sysfs, "eth0")->rate_bits_per_s, 0u) << speed;
  }
}

TEST(PortFacts, ADeviceThatIsNotOnPciHasNoAddress) {
  FakeSysfs sysfs = ConnectX();
  for (const char* device : {"virtio3", "0000:81:00.00", "0000-81:00.0", "0000:8g:00.0"}) {
    sysfs.Set("class/net/eth0/device", device);
    EXPECT_EQ(ReadPortFacts(sysfs, "eth0")->pci, "") << device;
    EXPECT_EQ(ReadPortFacts(sysfs, "eth0")->rdma_device, "") << device;
  }
}

TEST(PortFacts, NoSuchInterface) {
  EXPECT_TRUE(absl::IsNotFound(ReadPortFacts(ConnectX(), "eth1").status()));
  for (const char* name : {"", ".", "..", "../infiniband", "eth0/statistics"})
    EXPECT_TRUE(absl::IsInvalidArgument(ReadPortFacts(ConnectX(), name).status())) << name;
}

// The machine's own loopback interface: the names that the kernel uses are the ones read here.
TEST(PortFacts, TheRealLoopback) {
  const auto facts = ReadPortFacts(RealSysfs(), "lo");
  if (!facts.ok()) GTEST_SKIP() << "needs sysfs: /sys/class/net/lo is not visible here";
  EXPECT_GT(facts->ifindex, 0);
  EXPECT_EQ(facts->mac, "00:00:00:00:00:00");
  EXPECT_TRUE(facts->errors.contains("rx_errors"));
  EXPECT_TRUE(facts->carrier_changes.has_value());
}

}  // namespace
}  // namespace r2cc::health
