#include "health/io/port_facts.h"

#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace r2cc::health {
namespace {

// Signs of a bad cable, port or module, on Ethernet and on RDMA ports. Drops and overruns are left out: they tell of load.
constexpr const char* kNetErrors[] = {"rx_crc_errors", "rx_frame_errors",   "rx_length_errors",
                                      "rx_errors",     "tx_carrier_errors", "tx_errors"};
constexpr const char* kRdmaErrors[] = {"symbol_error", "port_rcv_errors", "link_error_recovery", "link_downed",
                                       "local_link_integrity_errors"};

constexpr uint64_t kBitsPerMbit = 1'000'000;

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

void ReadErrors(const Sysfs& sysfs, const std::string& folder, const char* const* begin, const char* const* end, PortFacts* facts) {
  for (const char* const* name = begin; name != end; ++name)
    if (const auto count = ReadNumber(sysfs, absl::StrCat(folder, "/", *name))) facts->errors[*name] = *count;
}

// The RDMA device on the same PCI function, and the port of it that carries this interface ("dev_port" counts from 0, RDMA from 1).
void ReadRdma(const Sysfs& sysfs, const std::string& interface, PortFacts* facts) {
  if (facts->pci.empty()) return;
  const uint64_t port = ReadNumber(sysfs, absl::StrCat("class/net/", interface, "/dev_port")).value_or(0) + 1;
  for (const std::string& device : sysfs.List("class/infiniband")) {
    const auto pci = sysfs.LinkName(absl::StrCat("class/infiniband/", device, "/device"));
    if (!pci.ok() || *pci != facts->pci) continue;
    facts->rdma_device = device;
    ReadErrors(sysfs, absl::StrCat("class/infiniband/", device, "/ports/", port, "/counters"), std::begin(kRdmaErrors),
               std::end(kRdmaErrors), facts);
    return;
  }
}

}  // namespace

absl::StatusOr<PortFacts> ReadPortFacts(const Sysfs& sysfs, const std::string& interface) {
  // The name becomes part of a path.
  if (interface.empty() || interface == "." || interface == ".." || interface.find('/') != std::string::npos)
    return absl::InvalidArgumentError(absl::StrCat("'", interface, "' is no name of an interface"));
  const std::string folder = absl::StrCat("class/net/", interface);
  const auto ifindex = ReadNumber(sysfs, folder + "/ifindex");
  if (!ifindex.has_value()) return absl::NotFoundError(absl::StrCat("/sys does not show interface ", interface));

  PortFacts facts;
  facts.ifindex = static_cast<int>(*ifindex);
  facts.operstate = sysfs.Read(folder + "/operstate").value_or("");
  if (const auto carrier = ReadNumber(sysfs, folder + "/carrier")) facts.carrier = *carrier != 0;
  facts.carrier_changes = ReadNumber(sysfs, folder + "/carrier_changes");
  // "-1" (not a number here) where the driver does not know; some drivers give the same as 32 bits.
  const uint64_t mbit = ReadNumber(sysfs, folder + "/speed").value_or(0);
  if (mbit < UINT32_MAX) facts.rate_bits_per_s = mbit * kBitsPerMbit;
  facts.mac = sysfs.Read(folder + "/address").value_or("");
  const auto device = sysfs.LinkName(folder + "/device");
  if (device.ok() && IsPciAddress(*device)) facts.pci = *device;
  ReadErrors(sysfs, folder + "/statistics", std::begin(kNetErrors), std::end(kNetErrors), &facts);
  ReadRdma(sysfs, interface, &facts);
  return facts;
}

}  // namespace r2cc::health
