#include "health/io/sysfs_port_facts.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace r2cc::health {
namespace {

constexpr uint64_t kBitsPerMbit = 1'000'000;
constexpr double kBitsPerGbit = 1e9;
// More than any NIC has; what /sys lists is counted no further.
constexpr size_t kBondMembersMax = 16;

std::optional<uint64_t> ReadNumber(const Sysfs& sysfs, const std::string& path) {
  const auto text = sysfs.Read(path);
  uint64_t number;
  if (!text.ok() || !absl::SimpleAtoi(*text, &number)) return std::nullopt;
  return number;
}

// PCI functions look like 0000:81:00.0; a device may also hang on virtio, USB or nothing.
bool IsPciAddress(std::string_view name) {
  constexpr std::string_view kShape = "xxxx:xx:xx.x";
  if (name.size() != kShape.size()) return false;
  for (size_t i = 0; i < name.size(); ++i) {
    const bool hex = (name[i] >= '0' && name[i] <= '9') || (name[i] >= 'a' && name[i] <= 'f');
    if (kShape[i] == 'x' ? !hex : name[i] != kShape[i]) return false;
  }
  return true;
}

// The name becomes part of a path.
bool IsName(const std::string& name) { return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos; }

// A driver's text, for people and for other daemons: printable ASCII, so that it fits into a line and into a message.
std::string ReadWord(const Sysfs& sysfs, const std::string& path) {
  std::string text = sysfs.Read(path).value_or("");
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return text;
}

void ReadErrors(const Sysfs& sysfs, const std::string& folder, std::initializer_list<const char*> names, SysfsPortFacts* facts) {
  for (const char* name : names)
    if (const auto count = ReadNumber(sysfs, absl::StrCat(folder, "/", name))) facts->errors[name] = *count;
}

std::optional<uint64_t> ReadSum(const Sysfs& sysfs, const std::string& folder, const char* a, const char* b) {
  const auto first = ReadNumber(sysfs, absl::StrCat(folder, "/", a));
  const auto second = ReadNumber(sysfs, absl::StrCat(folder, "/", b));
  if (!first.has_value() || !second.has_value()) return std::nullopt;
  return *first + *second;
}

// "400 Gb/sec (4X NDR)"
uint64_t ParseRdmaRate(const std::string& text) {
  double gbits = 0;
  if (!absl::SimpleAtod(text.substr(0, text.find(' ')), &gbits) || !(gbits > 0 && gbits < 1e6)) return 0;
  return static_cast<uint64_t>(gbits * kBitsPerGbit);
}

std::string PciOf(const Sysfs& sysfs, const std::string& interface) {
  const auto device = sysfs.LinkName(absl::StrCat("class/net/", interface, "/device"));
  return device.ok() && IsPciAddress(*device) ? *device : "";
}

// "4: ACTIVE"
std::string AfterColon(const std::string& text) {
  const size_t colon = text.find(": ");
  return colon == std::string::npos ? text : text.substr(colon + 2);
}

// "0x12", or "18" as some drivers write it.
uint16_t ReadLid(const Sysfs& sysfs, const std::string& path) {
  const std::string text = sysfs.Read(path).value_or("");
  uint32_t lid = 0;
  const bool number = text.starts_with("0x") ? absl::SimpleHexAtoi(text, &lid) : absl::SimpleAtoi(text, &lid);
  return number && lid <= UINT16_MAX ? static_cast<uint16_t>(lid) : 0;
}

uint64_t PortGuid(const Sysfs& sysfs, const std::string& port) {
  // A GID is the subnet's prefix and the port's GUID.
  const auto gid = sysfs.Read(port + "/gids/0");
  constexpr size_t kHalf = sizeof("fe80:0000:0000:0000:") - 1;
  return gid.ok() && gid->size() > kHalf ? ParseGuid(gid->substr(kHalf)) : 0;
}

// The facts of /sys below `device`, port `number`.
void ReadRdmaPort(const Sysfs& sysfs, const std::string& device, uint32_t number, SysfsPortFacts* facts) {
  const std::string port = absl::StrCat("class/infiniband/", device, "/ports/", number);
  facts->rdma_device = device;
  facts->rdma_port = number;
  const std::string layer = sysfs.Read(port + "/link_layer").value_or("InfiniBand");  // old drivers know no other
  facts->infiniband = layer == "InfiniBand" || layer == "IB";
  if (const std::string state = ReadWord(sysfs, port + "/state"); !state.empty()) {
    facts->rdma_state = AfterColon(state);
    facts->rdma_active = absl::AsciiStrToUpper(facts->rdma_state) == "ACTIVE";
  }
  // A port that is not active names the lowest rate that there is.
  if (facts->rate_bits_per_s == 0 && facts->rdma_active == true)
    facts->rate_bits_per_s = ParseRdmaRate(sysfs.Read(port + "/rate").value_or(""));
  if (facts->infiniband) {
    facts->port_guid = PortGuid(sysfs, port);
    facts->lid = ReadLid(sysfs, port + "/lid");
    facts->sm_lid = ReadLid(sysfs, port + "/sm_lid");
    facts->sm_service_level = static_cast<uint8_t>(ReadNumber(sysfs, port + "/sm_sl").value_or(0) & 0xf);
  }
  ReadErrors(sysfs, port + "/counters",
             {"symbol_error", "port_rcv_errors", "link_error_recovery", "link_downed", "local_link_integrity_errors"}, facts);
  ReadErrors(sysfs, port + "/hw_counters",
             {"local_ack_timeout_err", "packet_seq_err", "out_of_sequence", "implied_nak_seq_err", "roce_adp_retrans"}, facts);
  // Its own packets: the interface's counters do not see them.
  if (const auto packets = ReadSum(sysfs, port + "/counters", "port_xmit_packets", "port_rcv_packets"))
    facts->packets = facts->packets.value_or(0) + *packets;
}

// The RDMA device on one of these PCI functions, and the port of it that carries this interface ("dev_port" counts from 0, RDMA from 1).
void ReadRdma(const Sysfs& sysfs, const std::vector<std::string>& functions, uint64_t dev_port, SysfsPortFacts* facts) {
  for (const std::string& device : sysfs.List("class/infiniband")) {
    const auto pci = sysfs.LinkName(absl::StrCat("class/infiniband/", device, "/device"));
    if (!pci.ok() || std::find(functions.begin(), functions.end(), *pci) == functions.end()) continue;
    return ReadRdmaPort(sysfs, device, static_cast<uint32_t>(std::min<uint64_t>(dev_port, UINT8_MAX)) + 1, facts);
  }
}

}  // namespace

uint64_t ParseGuid(const std::string& text) {
  const bool prefixed = text.starts_with("0x");
  std::string digits = prefixed ? text.substr(2) : "";
  if (!prefixed)
    for (const char c : text)
      if (c != ':') digits += c;
  uint64_t guid = 0;
  const bool hex = digits.size() == 16 && std::all_of(digits.begin(), digits.end(), [](char c) { return absl::ascii_isxdigit(c); });
  return hex && absl::SimpleHexAtoi(digits, &guid) ? guid : 0;
}

absl::StatusOr<SysfsPortFacts> ReadSysfsPortFacts(const Sysfs& sysfs, const std::string& interface) {
  if (!IsName(interface)) return absl::InvalidArgumentError(absl::StrCat("'", interface, "' is no name of an interface"));
  const std::string folder = absl::StrCat("class/net/", interface);
  const auto ifindex = ReadNumber(sysfs, folder + "/ifindex");
  if (!ifindex.has_value()) return absl::NotFoundError(absl::StrCat("/sys does not show interface ", interface));

  SysfsPortFacts facts;
  facts.ifindex = static_cast<int>(*ifindex);
  facts.carrier_changes = ReadNumber(sysfs, folder + "/carrier_changes");
  // "-1" (not a number here) where the driver does not know; some drivers give the same as 32 bits.
  const uint64_t mbit = ReadNumber(sysfs, folder + "/speed").value_or(0);
  if (mbit < UINT32_MAX) facts.rate_bits_per_s = mbit * kBitsPerMbit;
  facts.mac = ReadWord(sysfs, folder + "/address");
  facts.packets = ReadSum(sysfs, folder + "/statistics", "rx_packets", "tx_packets");
  ReadErrors(sysfs, folder + "/statistics",
             {"rx_crc_errors", "rx_frame_errors", "rx_length_errors", "rx_errors", "tx_carrier_errors", "tx_errors"}, &facts);

  std::vector<std::string> functions;
  for (const std::string& member :
       std::vector<std::string>(absl::StrSplit(sysfs.Read(folder + "/bonding/slaves").value_or(""), ' ', absl::SkipEmpty())))
    if (IsName(member) && facts.bond_members.size() < kBondMembersMax) facts.bond_members.push_back(member);
  for (const std::string& one : facts.bond_members.empty() ? std::vector<std::string>{interface} : facts.bond_members)
    if (const std::string pci = PciOf(sysfs, one); !pci.empty()) functions.push_back(pci);
  if (functions.empty()) return facts;
  facts.pci = functions.front();
  const uint64_t dev_port = facts.bond_members.empty() ? ReadNumber(sysfs, folder + "/dev_port").value_or(0) : 0;
  ReadRdma(sysfs, functions, dev_port, &facts);
  return facts;
}

absl::StatusOr<SysfsPortFacts> ReadInfinibandFacts(const Sysfs& sysfs, uint64_t port_guid) {
  for (const std::string& device : sysfs.List("class/infiniband")) {
    for (const std::string& name : sysfs.List(absl::StrCat("class/infiniband/", device, "/ports"))) {
      uint32_t number = 0;
      if (!absl::SimpleAtoi(name, &number)) continue;
      if (PortGuid(sysfs, absl::StrCat("class/infiniband/", device, "/ports/", number)) != port_guid) continue;
      SysfsPortFacts facts;
      const auto pci = sysfs.LinkName(absl::StrCat("class/infiniband/", device, "/device"));
      if (pci.ok() && IsPciAddress(*pci)) facts.pci = *pci;
      ReadRdmaPort(sysfs, device, number, &facts);
      return facts;
    }
  }
  return absl::NotFoundError(absl::StrCat("/sys shows no InfiniBand port with GUID 0x", absl::Hex(port_guid, absl::kZeroPad16)));
}

}  // namespace r2cc::health
