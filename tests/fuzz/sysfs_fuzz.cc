// What drivers write into /sys, as facts about ports and as evidence.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/core/check.h"
#include "health/io/fake_sysfs.h"
#include "health/io/sysfs_port_facts.h"
#include "health/probe/sysfs_probe.h"
#include "tests/fuzz/input.h"

namespace {

using namespace r2cc;  // NOLINT

constexpr const char* kInterface[] = {"ifindex",
                                      "carrier_changes",
                                      "speed",
                                      "address",
                                      "dev_port",
                                      "device",
                                      "bonding/slaves",
                                      "statistics/rx_packets",
                                      "statistics/tx_packets",
                                      "statistics/rx_crc_errors",
                                      "statistics/tx_errors"};
constexpr const char* kPort[] = {"link_layer",
                                 "state",
                                 "rate",
                                 "gids/0",
                                 "lid",
                                 "sm_lid",
                                 "sm_sl",
                                 "counters/symbol_error",
                                 "counters/link_downed",
                                 "counters/port_xmit_packets",
                                 "counters/port_rcv_packets",
                                 "hw_counters/packet_seq_err"};
constexpr const char* kTexts[] = {"0",
                                  "1",
                                  "2",
                                  "-1",
                                  "4294967295",
                                  "18446744073709551615",
                                  "9223372036854775807",
                                  "up",
                                  "down",
                                  "eth0",
                                  "eth0 eth1",
                                  "0000:81:00.0",
                                  "InfiniBand",
                                  "Ethernet",
                                  "4: ACTIVE",
                                  "1: DOWN",
                                  "400 Gb/sec (4X NDR)",
                                  "1e5 Gb/sec",
                                  "nan",
                                  "inf Gb/sec",
                                  "fe80:0000:0000:0000:0002:c903:0000:abcd",
                                  "0x12",
                                  "0xffffffff",
                                  ""};
constexpr uint64_t kGuid = 0x0002c9030000abcd;

std::string TakePath(fuzz::Input* input) {
  switch (input->Below(5)) {
    case 0: return absl::StrCat("class/net/eth0/", kInterface[input->Below(std::size(kInterface))]);
    case 1: return absl::StrCat("class/net/eth1/", kInterface[input->Below(std::size(kInterface))]);
    case 2: return absl::StrCat("class/infiniband/mlx5_0/ports/", 1 + input->Below(2), "/", kPort[input->Below(std::size(kPort))]);
    case 3: return "class/infiniband/mlx5_0/device";
    default:
      return absl::StrCat("class/infiniband/", input->TakeString(input->Below(8)), "/ports/", input->TakeString(input->Below(4)), "/state");
  }
}

void CheckFacts(const health::SysfsPortFacts& facts) {
  R2CC_CHECK(facts.rate_bits_per_s <= uint64_t{1'000'000} * UINT32_MAX);
  R2CC_CHECK(facts.bond_members.size() <= 16 && facts.sm_service_level < 16);
  for (const std::string* word : {&facts.mac, &facts.rdma_state})
    for (const char c : *word) R2CC_CHECK(c >= ' ' && c <= '~');
  for (const std::string& member : facts.bond_members) R2CC_CHECK(!member.empty() && member.find('/') == std::string::npos);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  health::FakeSysfs sysfs;
  health::PortJudge ethernet("n0", "rail0", /*speaks_of_link=*/false), infiniband("n0", "ib0", /*speaks_of_link=*/true);
  Nanos now = 0;
  const auto take = [&](const absl::StatusOr<health::SysfsPortFacts>& facts, health::PortJudge* judge) {
    if (!facts.ok()) {
      for (const health::Evidence& evidence : judge->Gone(std::string(facts.status().message()), now)) R2CC_CHECK(evidence.when == now);
      return;
    }
    CheckFacts(*facts);
    for (const health::Evidence& evidence : judge->Judge(*facts, now)) R2CC_CHECK(evidence.when == now && evidence.value >= 0);
  };
  while (!input.empty()) {
    const size_t choice = input.Below(8);
    if (choice == 0) {
      now += static_cast<Nanos>(input.TakeNumber() % (1000 * kNanosPerSecond));
      take(health::ReadSysfsPortFacts(sysfs, "eth0"), &ethernet);
      take(health::ReadInfinibandFacts(sysfs, kGuid), &infiniband);
    } else if (choice == 1) {
      sysfs.Remove(TakePath(&input));
    } else {
      const std::string path = TakePath(&input);
      const size_t text = input.Below(std::size(kTexts) + 8);
      sysfs.Set(path, text < std::size(kTexts) ? kTexts[text] : input.TakeString(input.Below(64)));
    }
  }
  return 0;
}
