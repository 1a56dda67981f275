#include "daemon/rails/rail_match.h"

#include <gtest/gtest.h>

#include <cstring>

namespace r2cc::daemon {
namespace {

constexpr uint64_t kOwnNetns = 77;

struct Rail {
  const char* name = "";
  const char* address = "";
  const char* pci = "";
  uint64_t guid = 0;
  uint8_t mac_last = 0;  // 0: no MAC
  uint64_t netns = kOwnNetns;
};

std::string MatchOne(const Rail& rail, const std::vector<MatchableNic>& nics) {
  plan::AttachRequest request{};
  request.rail_count = 1;
  auto& wire = request.rails[0];
  std::strcpy(wire.name, rail.name);
  std::strcpy(wire.address, rail.address);
  std::strcpy(wire.pci, rail.pci);
  wire.guid = rail.guid;
  if (rail.mac_last != 0) {
    wire.mac[0] = 2;
    wire.mac[5] = rail.mac_last;
  }
  wire.netns_inode = rail.netns;
  return MatchRails(request, nics, kOwnNetns).at(0);
}

MatchableNic Nic(const char* name, const char* pci, uint64_t guid, uint8_t mac_last, std::vector<std::string> addresses) {
  MatchableNic nic{name, std::string(name) + "_if", std::move(addresses), pci, guid, {}};
  if (mac_last != 0) nic.mac = {2, 0, 0, 0, 0, mac_last};
  return nic;
}

class RailMatchTest : public testing::Test {
 protected:
  const std::vector<MatchableNic> nics_ = {
      Nic("rail0", "0000:81:00.0", 11, 1, {"10.0.0.1"}),
      Nic("rail1", "0000:82:00.0", 12, 2, {"10.0.1.1", "fd00::1"}),
      Nic("lo2", "", 0, 0, {"127.0.2.1"}),
  };
};

TEST_F(RailMatchTest, PciWinsInAnyNamespaceAndSpelling) {
  EXPECT_EQ(MatchOne({.name = "net1", .address = "10.0.0.1", .pci = "0000:82:00.0", .netns = 5}, nics_), "rail1");
  EXPECT_EQ(MatchOne({.pci = "82:00.0"}, nics_), "rail1");
}

TEST_F(RailMatchTest, GuidIsUniqueInTheWorld) { EXPECT_EQ(MatchOne({.name = "mlx5_9", .guid = 12, .netns = 5}, nics_), "rail1"); }

TEST_F(RailMatchTest, MacCountsInTheOwnNamespaceOnly) {
  EXPECT_EQ(MatchOne({.name = "x", .mac_last = 2}, nics_), "rail1");
  EXPECT_EQ(MatchOne({.name = "x", .mac_last = 2, .netns = 5}, nics_), "");
  EXPECT_EQ(MatchOne({.name = "x", .mac_last = 2, .netns = 0}, nics_), "");
}

TEST_F(RailMatchTest, AddressInAnySpellingAlsoAsName) {
  EXPECT_EQ(MatchOne({.name = "eth5", .address = "fd00:0:0::1", .netns = 5}, nics_), "rail1");
  EXPECT_EQ(MatchOne({.name = "127.0.2.1"}, nics_), "lo2");
  EXPECT_EQ(MatchOne({.name = "eth5", .address = "10.9.9.9"}, nics_), "");
}

TEST_F(RailMatchTest, InterfaceNameInTheOwnNamespaceOnly) {
  EXPECT_EQ(MatchOne({.name = "rail0_if"}, nics_), "rail0");
  EXPECT_EQ(MatchOne({.name = "rail0_if", .netns = 5}, nics_), "");
  // NODE/NIC names are the operator's, not the kernel's.
  EXPECT_EQ(MatchOne({.name = "rail0"}, nics_), "");
}

TEST_F(RailMatchTest, TwoPortsOfOneFunctionAreDistinguishedByTheNextKey) {
  const std::vector<MatchableNic> ports = {Nic("p0", "0000:81:00.0", 0, 1, {"10.0.0.1"}), Nic("p1", "0000:81:00.0", 0, 2, {"10.0.1.1"})};
  EXPECT_EQ(MatchOne({.name = "net1", .address = "10.0.1.1", .pci = "0000:81:00.0", .netns = 5}, ports), "p1");
  EXPECT_EQ(MatchOne({.name = "net1", .pci = "0000:81:00.0", .mac_last = 1}, ports), "p0");
  EXPECT_EQ(MatchOne({.name = "net1", .pci = "0000:81:00.0", .netns = 5}, ports), "") << "a guess would move the wrong rail's traffic";
}

TEST_F(RailMatchTest, AnotherDeviceWithTheSameAddressIsAnotherNic) {
  EXPECT_EQ(MatchOne({.name = "eth0", .address = "10.0.0.1", .pci = "0000:99:00.0", .netns = 5}, nics_), "");
}

TEST_F(RailMatchTest, NothingKnownMatchesNothing) {
  EXPECT_EQ(MatchOne({}, nics_), "");
  EXPECT_EQ(MatchOne({}, {Nic("bare", "", 0, 0, {})}), "");
}

}  // namespace
}  // namespace r2cc::daemon
