#include "client/parts/parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/parts/fake_part_reader.h"

namespace r2cc::client {
namespace {

using testing::ElementsAre;
using testing::Pair;
using namespace std::string_literals;

// As lldpcli 1.0.16 writes it, shortened.
constexpr char kTwoPorts[] = R"({"lldp":[{"interface":[
  {"name":"eth0","via":"LLDP","rid":"1","age":"0 day, 00:00:05",
   "chassis":[{"id":[{"type":"mac","value":"0c:42:a1:00:00:01"}],"name":[{"value":"leaf3"}],"descr":[{"value":"Cumulus"}],
               "capability":[{"type":"Bridge","enabled":true}]}],
   "port":[{"id":[{"type":"ifname","value":"Eth1/14"}],"descr":[{"value":"to n0"}],"ttl":[{"value":"120"}]}]},
  {"name":"eth1","via":"LLDP","rid":"2",
   "chassis":[{"id":[{"type":"mac","value":"0c:42:a1:00:00:02"}]}],
   "port":[{"id":[{"type":"mac","value":"0c:42:a1:00:00:03"}],"descr":[{"value":"swp7"}]}]},
  {"name":"eth0","chassis":[{"name":[{"value":"a second one"}]}],"port":[{"id":[{"value":"x"}]}]}]}]})";

// A string, then VPD-R with a part number and a serial number.
std::string VitalData(const std::string& serial) {
  const std::string fields = "PN\x04"s + "MCX6" + "SN" + static_cast<char>(serial.size()) + serial;
  return "\x82\x03\x00"s + "NIC" + "\x90"s + static_cast<char>(fields.size()) + "\x00"s + fields + "\x78"s;
}

TEST(ParseNeighbours, NamesSwitchAndPort) {
  EXPECT_THAT(ParseNeighbours(kTwoPorts),
              ElementsAre(Pair("eth0", Neighbour{"leaf3", "Eth1/14"}), Pair("eth1", Neighbour{"0c:42:a1:00:00:02", "swp7"})));
}

TEST(ParseNeighbours, GarbledPartsAreLeftOut) {
  for (const char* bad : {"", "{", "[]", R"({"lldp":7})", R"({"lldp":[{"interface":[{"name":"eth0"}]}]})",
                          R"({"lldp":[{"interface":[7]}]})", R"({"lldp":[{"interface":[{"name":"eth0","port":[{"id":[{"value":7}]}]}]}]})"})
    EXPECT_TRUE(ParseNeighbours(bad).empty()) << bad;
  const auto hostile = ParseNeighbours(
      R"({"lldp":[{"interface":[{"name":"e","chassis":[{"name":[{"value":"\u001b[31mx"}]}],"port":[{"id":[{"value":"p\u00e9"}]}]}]}]})");
  EXPECT_THAT(hostile, ElementsAre(Pair("e", Neighbour{"?[31mx", "p??"})));
}

TEST(SerialIn, IsFoundAndNothingBeyondTheEndIsRead) {
  const std::string whole = VitalData("MT2133X00123");
  EXPECT_EQ(SerialIn(whole), "MT2133X00123");
  EXPECT_EQ(SerialIn(VitalData("S1  ")), "S1");
  for (size_t size = 0; size < whole.size() - 1; ++size) EXPECT_EQ(SerialIn(whole.substr(0, size)), "") << size;
  EXPECT_EQ(SerialIn(std::string(1000, '\xff')), "");
  EXPECT_EQ(SerialIn(std::string(1000, '\x90')), "");
  EXPECT_EQ(SerialIn("plain text"), "");
}

TEST(Parts, AddsWhatCanBeReadAndTakesItsReasonAway) {
  FakePartReader reader;
  reader.neighbours = kTwoPorts;
  reader.interfaces["02:00"] = "eth0";
  reader.vital_data["0000:81:00.0"] = VitalData("MT1");
  v1::NicView nic;
  nic.set_mac("02:00");
  nic.set_pci("0000:81:00.0");
  v1::NicInventory inventory;
  for (const char* line : {"switch port: ask lldpcli", "serial: only root", "firmware: none"}) inventory.add_missing(line);
  Parts parts(&reader);
  parts.AddTo(nic, &inventory);
  EXPECT_EQ(inventory.switch_name() + " " + inventory.switch_port() + " " + inventory.serial(), "leaf3 Eth1/14 MT1");
  EXPECT_THAT(inventory.missing(), ElementsAre("firmware: none"));
  v1::NicInventory another;
  parts.AddTo(nic, &another);
  EXPECT_EQ(reader.asked, 1) << "lldpd is asked once";
}

TEST(Parts, ACallerWithoutAccessKeepsTheReasons) {
  FakePartReader reader;
  reader.interfaces["02:00"] = "eth0";
  v1::NicView nic;
  nic.set_mac("02:00");
  nic.set_pci("0000:81:00.0");
  v1::NicInventory inventory;
  inventory.add_missing("switch port: ask lldpcli");
  Parts(&reader).AddTo(nic, &inventory);
  EXPECT_THAT(inventory.missing(), ElementsAre("switch port: ask lldpcli"));
  EXPECT_EQ(inventory.switch_port(), "");
}

}  // namespace
}  // namespace r2cc::client
