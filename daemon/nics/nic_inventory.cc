#include "daemon/nics/nic_inventory.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/names.h"

namespace r2cc::daemon {
namespace {

constexpr size_t kTextBytesMax = 64;

std::string Clean(const std::string& text) { return CleanText(text.data(), std::min(text.size(), kTextBytesMax)); }

// "0000:81:00.0" is in the slot with the address "0000:81:00".
std::string SlotOf(const health::Sysfs& sysfs, const std::string& pci) {
  constexpr char kSlots[] = "bus/pci/slots";
  for (const std::string& slot : sysfs.List(kSlots)) {
    const auto address = sysfs.Read(absl::StrCat(kSlots, "/", slot, "/address"));
    if (address.ok() && !address->empty() && absl::StartsWith(pci, absl::StrCat(*address, "."))) return slot;
  }
  return "";
}

}  // namespace

v1::NicInventory InventoryOf(const health::Sysfs& sysfs, const std::string& interface, const std::string& device, const std::string& pci) {
  v1::NicInventory inventory;
  const std::string entry = !interface.empty() ? absl::StrCat("class/net/", interface) : absl::StrCat("class/infiniband/", device);
  if (const auto driver = sysfs.LinkName(absl::StrCat(entry, "/device/driver")); driver.ok())
    inventory.set_driver(Clean(*driver));
  else
    inventory.add_missing("driver: no device is behind this interface");
  if (const auto firmware = sysfs.Read(absl::StrCat("class/infiniband/", device, "/fw_ver")); !device.empty() && firmware.ok())
    inventory.set_firmware(Clean(*firmware));
  else
    inventory.add_missing(absl::StrCat("firmware: /sys has it for RDMA devices only: `ethtool -i ", interface, "`"));
  if (pci.empty()) {
    inventory.add_missing("slot, serial: it is no PCI device");
  } else {
    inventory.set_slot(Clean(SlotOf(sysfs, pci)));
    if (inventory.slot().empty()) inventory.add_missing(absl::StrCat("slot: the machine names no slot for ", pci));
    inventory.add_missing(absl::StrCat("serial: only root may read it, and the device takes up to a second: `lspci -vv -s ", pci, "`"));
  }
  if (!interface.empty())
    inventory.add_missing(
        absl::StrCat("switch port: lldpd answers only root and its own group: `lldpcli show neighbors ports ", interface, "`"));
  return inventory;
}

}  // namespace r2cc::daemon
