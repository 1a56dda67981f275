#include "base/core/verbs/device_sysfs.h"

#include <filesystem>
#include <fstream>
#include <system_error>

namespace r2cc::verbs {

DeviceSysfs ReadSysfs(const std::string& sysfs, const std::string& device) {
  const std::filesystem::path folder = std::filesystem::path(sysfs) / "class/infiniband" / device;
  DeviceSysfs found;
  std::error_code error;
  const std::filesystem::path driver = std::filesystem::read_symlink(folder / "device/driver", error);
  if (!error) {
    found.driver = driver.filename();
    const std::filesystem::path function = std::filesystem::read_symlink(folder / "device", error);
    if (!error) found.pci = function.filename();
    return found;
  }
  // soft-RoCE alone is no device of any bus, and has this file.
  std::ifstream parent(folder / "parent");
  if (!parent) return found;
  found.driver = "rdma_rxe";
  parent >> found.interface;
  return found;
}

}  // namespace r2cc::verbs
