// Reads the hardware of a NIC, as /sys shows it to every user.
#ifndef R2CC_DAEMON_NICS_NIC_INVENTORY_H_
#define R2CC_DAEMON_NICS_NIC_INVENTORY_H_

#include <string>

#include "health/io/sysfs.h"
#include "proto/r2cc.pb.h"

namespace r2cc::daemon {

// `interface`, `device` (of RDMA), `pci`: empty if it has none. Takes some file reads. A fact that needs a capability that r2ccd lacks, or
// a wait for the device, is left out, with the reason and the command that shows it.
v1::NicInventory InventoryOf(const health::Sysfs& sysfs, const std::string& interface, const std::string& device, const std::string& pci);

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_NICS_NIC_INVENTORY_H_
