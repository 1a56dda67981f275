#include "health/io/hwloc_topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

namespace r2cc::health {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

NodeTopology Load(const std::string& file) {
  const auto topology = HwlocTopology("health/io/testdata/" + file).Read();
  EXPECT_TRUE(topology.ok()) << topology.status();
  return topology.value_or(NodeTopology());
}

std::vector<std::string> Addresses(const std::vector<PciDevice>& devices) {
  std::vector<std::string> addresses;
  for (const PciDevice& device : devices) addresses.push_back(device.pci);
  return addresses;
}

size_t Count(const std::vector<PcieDistance>& row, PcieDistance distance) {
  return static_cast<size_t>(std::count(row.begin(), row.end(), distance));
}

TEST(HwlocTopology, ADgxHasEightPairsAndTwoCardsOfTwoPorts) {
  const NodeTopology dgx = Load("dgx.xml");
  EXPECT_THAT(Addresses(dgx.gpus), ElementsAre("0000:1b:00.0", "0000:43:00.0", "0000:52:00.0", "0000:61:00.0", "0000:9d:00.0",
                                               "0000:c3:00.0", "0000:d1:00.0", "0000:df:00.0"))
      << "the VGA chip is no GPU";
  EXPECT_THAT(Addresses(dgx.nics),
              ElementsAre("0000:18:00.0", "0000:29:00.0", "0000:29:00.1", "0000:40:00.0", "0000:4f:00.0", "0000:5e:00.0", "0000:9a:00.0",
                          "0000:aa:00.0", "0000:aa:00.1", "0000:c0:00.0", "0000:ce:00.0", "0000:dc:00.0"));
  for (size_t gpu = 0; gpu < dgx.gpus.size(); ++gpu) EXPECT_EQ(dgx.gpus[gpu].numa_node, gpu < 4 ? 0 : 1) << gpu;
}

TEST(HwlocTopology, EachGpuOfADgxHasOneNearNic) {
  const NodeTopology dgx = Load("dgx.xml");
  const std::vector<size_t> near = {0, 3, 4, 5, 6, 9, 10, 11};
  ASSERT_EQ(dgx.gpu_to_nic.size(), 8u);
  for (size_t gpu = 0; gpu < 8; ++gpu) {
    const auto& row = dgx.gpu_to_nic[gpu];
    EXPECT_EQ(row[near[gpu]], PcieDistance::kSameSwitches) << gpu;
    EXPECT_EQ(Count(row, PcieDistance::kSameNuma), 5u) << gpu;
    EXPECT_EQ(Count(row, PcieDistance::kSameMachine), 6u) << gpu;
  }
}

TEST(HwlocTopology, TheDistancesBetweenNicsAreSymmetric) {
  const NodeTopology dgx = Load("dgx.xml");
  for (size_t a = 0; a < dgx.nics.size(); ++a) {
    EXPECT_EQ(dgx.nic_to_nic[a][a], PcieDistance::kSameDevice);
    for (size_t b = 0; b < dgx.nics.size(); ++b) EXPECT_EQ(dgx.nic_to_nic[a][b], dgx.nic_to_nic[b][a]);
  }
  EXPECT_EQ(dgx.nic_to_nic[1][2], PcieDistance::kSameDevice) << "two ports of one card";
}

TEST(HwlocTopology, EveryStepOfDistance) {
  const NodeTopology small = Load("workstation.xml");
  EXPECT_THAT(Addresses(small.gpus), ElementsAre("0000:01:00.0", "0000:06:00.0")) << "a display controller, and an accelerator";
  EXPECT_THAT(Addresses(small.nics), ElementsAre("0000:02:00.0", "0000:05:00.0", "0000:07:00.0"));
  EXPECT_THAT(small.gpu_to_nic[0],
              ElementsAre(PcieDistance::kSameHostBridge, PcieDistance::kSameHostBridge, PcieDistance::kSameHostBridge));
  EXPECT_THAT(small.gpu_to_nic[1], ElementsAre(PcieDistance::kSameHostBridge, PcieDistance::kSameSwitch, PcieDistance::kSameSwitch));
}

TEST(HwlocTopology, AFileThatIsNoneIsNamed) {
  const auto missing = HwlocTopology("/no/such.xml").Read();
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr("/no/such.xml"));
  const std::string garbled = std::string(std::getenv("TEST_TMPDIR")) + "/garbled.xml";
  std::ofstream(garbled) << "<topology><object type=";
  EXPECT_THAT(std::string(HwlocTopology(garbled).Read().status().message()), HasSubstr("garbled.xml"));
}

// The facts about this machine fit together.
TEST(HwlocTopology, ThisMachine) {
  const auto here = HwlocTopology().Read();
  ASSERT_TRUE(here.ok()) << here.status();
  EXPECT_EQ(here->gpu_to_nic.size(), here->gpus.size());
  ASSERT_EQ(here->nic_to_nic.size(), here->nics.size());
  for (const auto& row : here->nic_to_nic) EXPECT_EQ(row.size(), here->nics.size());
}

TEST(PcieDistance, EveryStepHasAName) {
  EXPECT_STREQ(PcieDistanceName(PcieDistance::kSameDevice), "same-device");
  EXPECT_STREQ(PcieDistanceName(PcieDistance::kSameMachine), "same-machine");
}

}  // namespace
}  // namespace r2cc::health
