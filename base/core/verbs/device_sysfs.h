// Reads sysfs about an RDMA device. No fact is required: one that is missing is empty.
#ifndef R2CC_BASE_CORE_VERBS_DEVICE_SYSFS_H_
#define R2CC_BASE_CORE_VERBS_DEVICE_SYSFS_H_

#include <string>

namespace r2cc::verbs {

struct DeviceSysfs {
  std::string driver;     // of the kernel: mlx5_core, rdma_rxe
  std::string pci;        // of the PCI function: 0000:81:00.0
  std::string interface;  // of soft-RoCE: the network interface that it was made on
};

// `sysfs`: where it is mounted. Any thread.
DeviceSysfs ReadSysfs(const std::string& sysfs, const std::string& device);

}  // namespace r2cc::verbs

#endif  // R2CC_BASE_CORE_VERBS_DEVICE_SYSFS_H_
