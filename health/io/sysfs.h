// The seam to /sys. Real: RealSysfs; fake: fake_sysfs.h. Paths are below the root ("class/net/eth0/speed").
#ifndef R2CC_HEALTH_IO_SYSFS_H_
#define R2CC_HEALTH_IO_SYSFS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace r2cc::health {

class Sysfs {
 public:
  virtual ~Sysfs() = default;

  // The file's text without the newline at its end; at most kSysfsFileBytesMax of it. NotFound if there is none; some attributes
  // cannot be read while their device is down (speed, carrier), which is an error too.
  virtual absl::StatusOr<std::string> Read(const std::string& path) const = 0;

  // The last component of where the link points ("0000:81:00.0").
  virtual absl::StatusOr<std::string> LinkName(const std::string& path) const = 0;

  // The names in a folder, sorted; empty if there is no such folder.
  virtual std::vector<std::string> List(const std::string& path) const = 0;
};

constexpr size_t kSysfsFileBytesMax = 4096;

// Any number of threads.
class RealSysfs final : public Sysfs {
 public:
  explicit RealSysfs(std::string root = "/sys") : root_(std::move(root)) {}
  absl::StatusOr<std::string> Read(const std::string& path) const override;
  absl::StatusOr<std::string> LinkName(const std::string& path) const override;
  std::vector<std::string> List(const std::string& path) const override;

 private:
  const std::string root_;
};

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_IO_SYSFS_H_
