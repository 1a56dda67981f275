// A Sysfs over a map. One thread.
#ifndef R2CC_HEALTH_IO_FAKE_SYSFS_H_
#define R2CC_HEALTH_IO_FAKE_SYSFS_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "health/io/sysfs.h"

namespace r2cc::health {

class FakeSysfs final : public Sysfs {
 public:
  // A file's text, or where a link points.
  void Set(const std::string& path, const std::string& text) { files_[path] = text; }
  void Remove(const std::string& path) { files_.erase(path); }

  absl::StatusOr<std::string> Read(const std::string& path) const override {
    const auto found = files_.find(path);
    if (found == files_.end()) return absl::NotFoundError(absl::StrCat(path, ": no such file"));
    return found->second;
  }
  absl::StatusOr<std::string> LinkName(const std::string& path) const override {
    auto target = Read(path);
    if (target.ok()) *target = target->substr(target->rfind('/') + 1);
    return target;
  }
  std::vector<std::string> List(const std::string& path) const override {
    const std::string prefix = path + "/";
    std::set<std::string> names;
    for (const auto& [file, text] : files_)
      if (file.starts_with(prefix)) names.insert(file.substr(prefix.size(), file.find('/', prefix.size()) - prefix.size()));
    return {names.begin(), names.end()};
  }

 private:
  std::map<std::string, std::string> files_;
};

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_IO_FAKE_SYSFS_H_
