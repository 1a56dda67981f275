#include "health/io/sysfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include <algorithm>

#include "absl/status/status.h"

namespace r2cc::health {

absl::StatusOr<std::string> RealSysfs::Read(const std::string& path) const {
  const std::string full = root_ + "/" + path;
  const int fd = open(full.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return absl::ErrnoToStatus(errno, full);
  std::string text(kSysfsFileBytesMax, '\0');
  ssize_t bytes;
  do {
    bytes = read(fd, text.data(), text.size());
  } while (bytes < 0 && errno == EINTR);
  const int error = errno;
  close(fd);
  if (bytes < 0) return absl::ErrnoToStatus(error, full);
  text.resize(static_cast<size_t>(bytes));
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

absl::StatusOr<std::string> RealSysfs::LinkName(const std::string& path) const {
  const std::string full = root_ + "/" + path;
  char target[PATH_MAX];
  const ssize_t bytes = readlink(full.c_str(), target, sizeof(target));
  if (bytes < 0) return absl::ErrnoToStatus(errno, full);
  const std::string text(target, static_cast<size_t>(bytes));
  return text.substr(text.rfind('/') + 1);
}

std::vector<std::string> RealSysfs::List(const std::string& path) const {
  std::vector<std::string> names;
  DIR* folder = opendir((root_ + "/" + path).c_str());
  if (folder == nullptr) return names;
  while (const dirent* entry = readdir(folder)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  closedir(folder);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace r2cc::health
