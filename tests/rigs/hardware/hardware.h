// The RDMA devices that a test may have for itself: R2CC_HW="mlx5_0+mlx5_2 mlx5_1+mlx5_3". DEVICE+DEVICE are the two ends of a cable, or of
// a way through a switch; both are in this machine.
#ifndef R2CC_TESTS_RIGS_HARDWARE_HARDWARE_H_
#define R2CC_TESTS_RIGS_HARDWARE_HARDWARE_H_

#include <string>
#include <vector>

namespace r2cc::rig {

constexpr char kNoHardware[] =
    "needs hardware: R2CC_HW names no RDMA devices; with two that are cabled to each other: R2CC_HW=\"mlx5_0+mlx5_2\", with two such "
    "cables: R2CC_HW=\"mlx5_0+mlx5_2 mlx5_1+mlx5_3\"";

struct HardwareEnd {
  std::string device;
  std::string interface;  // behind its first port
};

struct HardwareCable {
  HardwareEnd ends[2];
};

// `text`: of R2CC_HW, null if it is not set; then there are none. `sysfs`: where that is mounted. False with one line in `*error`: it
// cannot be read, or names a device that this machine does not have or that has no network interface.
bool FindHardware(const char* text, const std::string& sysfs, std::vector<HardwareCable>* cables, std::string* error);

// One line: driver, firmware, link layer and rate of the device, as far as sysfs knows them.
std::string Describe(const HardwareEnd& end, const std::string& sysfs);

}  // namespace r2cc::rig

#endif  // R2CC_TESTS_RIGS_HARDWARE_HARDWARE_H_
