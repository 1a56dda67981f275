// The seam to /sys. Real: RealSysfs; fake: fake_sysfs.h. Paths are below the root ("class/net/eth0/speed").
#ifndef R2CC_HEALTH_IO_SYSFS_H_
#define R2CC_HEALTH_IO_SYSFS_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace r2cc::health {

// A file that stays open. It belongs to the device that had it, also if names change: once that device is gone, reading fails forever.
class SysfsFile {
 public:
  virtual ~SysfsFile() = default;
  // As Sysfs::Read.
  virtual absl::StatusOr<std::string> Read() = 0;
};

class Sysfs {
 public:
  virtual ~Sysfs() = default;

  // The file's text without the newline at its end; at most kSysfsFileBytesMax of it. NotFound if there is none; some attributes
  // cannot be read while their device is down (speed, carrier), which is an error too.
  virtual absl::StatusOr<std::string> Read(const std::string& path) const = 0;

  // For one that is read again and again. NotFound if there is none.
  virtual absl::StatusOr<std::unique_ptr<SysfsFile>> Open(const std::string& path) const = 0;

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
  absl::StatusOr<std::unique_ptr<SysfsFile>> Open(const std::string& path) const override;
  absl::StatusOr<std::string> LinkName(const std::string& path) const override;
  std::vector<std::string> List(const std::string& path) const override;

 private:
  const std::string root_;
};

// Keeps open what Read was asked for, as the way to a file costs many times what its text does. One thread.
class KeptSysfs final : public Sysfs {
 public:
  // `base` outlives this.
  explicit KeptSysfs(const Sysfs* base) : base_(base) {}

  // Closes all files, because names may mean other devices by now. Otherwise a file is opened again only once its device is gone.
  void Drop() { files_.clear(); }

  absl::StatusOr<std::string> Read(const std::string& path) const override;
  absl::StatusOr<std::unique_ptr<SysfsFile>> Open(const std::string& path) const override { return base_->Open(path); }
  absl::StatusOr<std::string> LinkName(const std::string& path) const override { return base_->LinkName(path); }
  std::vector<std::string> List(const std::string& path) const override { return base_->List(path); }

 private:
  const Sysfs* base_;
  mutable std::map<std::string, std::unique_ptr<SysfsFile>> files_;
};

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_IO_SYSFS_H_
