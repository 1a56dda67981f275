#include "health/io/sysfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/status/status.h"

namespace r2cc::health {

namespace {

class RealFile final : public SysfsFile {
 public:
  RealFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  ~RealFile() override { close(fd_); }
  RealFile(const RealFile&) = delete;
  RealFile& operator=(const RealFile&) = delete;

  absl::StatusOr<std::string> Read() override {
    std::string text(kSysfsFileBytesMax, '\0');
    ssize_t bytes;
    do {
      bytes = pread(fd_, text.data(), text.size(), 0);
    } while (bytes < 0 && errno == EINTR);
    if (bytes < 0) return absl::ErrnoToStatus(errno, path_);
    text.resize(static_cast<size_t>(bytes));
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text;
  }

 private:
  const int fd_;
  const std::string path_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<SysfsFile>> RealSysfs::Open(const std::string& path) const {
  std::string full = root_ + "/" + path;
  const int fd = open(full.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return absl::ErrnoToStatus(errno, full);
  return std::make_unique<RealFile>(fd, std::move(full));
}

absl::StatusOr<std::string> RealSysfs::Read(const std::string& path) const {
  const auto file = Open(path);
  return file.ok() ? (*file)->Read() : file.status();
}

absl::StatusOr<std::string> KeptSysfs::Read(const std::string& path) const {
  std::unique_ptr<SysfsFile>& kept = files_[path];
  if (kept != nullptr) {
    if (auto text = kept->Read(); text.ok()) return text;
  }
  files_.erase(path);
  auto file = base_->Open(path);
  if (!file.ok()) return file.status();
  auto text = (*file)->Read();
  if (text.ok()) files_[path] = *std::move(file);
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
