#include "daemon/service/handed_descriptors.h"

#include <fcntl.h>
#include <unistd.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace r2cc::daemon {

std::vector<std::string> HandedNames(const char* pid, const char* count, const char* names, int64_t own_pid) {
  int64_t for_pid = 0;
  int descriptors = 0;
  if (pid == nullptr || count == nullptr || names == nullptr || !absl::SimpleAtoi(pid, &for_pid) || for_pid != own_pid) return {};
  if (!absl::SimpleAtoi(count, &descriptors) || descriptors < 1 || descriptors > kHandedMax) return {};
  std::vector<std::string> all = absl::StrSplit(names, ':');
  return all.size() == static_cast<size_t>(descriptors) ? all : std::vector<std::string>();
}

HandedDescriptors::HandedDescriptors(const std::vector<std::string>& names) {
  for (size_t i = 0; i < names.size(); ++i) {
    const int fd = kHandedFirst + static_cast<int>(i);
    // One that is not open was never handed over.
    if (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) continue;
    if (!descriptors_.emplace(names[i], fd).second) close(fd);
  }
}

HandedDescriptors::~HandedDescriptors() {
  for (const auto& [name, fd] : descriptors_) close(fd);
}

std::vector<std::string> HandedDescriptors::names() const {
  std::vector<std::string> names;
  for (const auto& [name, fd] : descriptors_) names.push_back(name);
  return names;
}

int HandedDescriptors::Take(const std::string& name) {
  const auto found = descriptors_.find(name);
  if (found == descriptors_.end()) return -1;
  const int fd = found->second;
  descriptors_.erase(found);
  return fd;
}

}  // namespace r2cc::daemon
