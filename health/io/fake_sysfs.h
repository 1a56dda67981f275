// A Sysfs over a map, and whole trees of it from files. One thread.
#ifndef R2CC_HEALTH_IO_FAKE_SYSFS_H_
#define R2CC_HEALTH_IO_FAKE_SYSFS_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "health/io/sysfs.h"

namespace r2cc::health {

class FakeSysfs final : public Sysfs {
 public:
  // The tree in a file of testdata/: a line "PATH: TEXT" for each file of /sys, "PATH -> TARGET" for each link.
  static FakeSysfs Load(const std::string& file) {
    FakeSysfs sysfs;
    std::ifstream lines(file);
    EXPECT_TRUE(lines.good()) << file;
    for (std::string line; std::getline(lines, line);) {
      if (line.empty() || line.front() == '#') continue;
      const size_t colon = line.find(": "), arrow = line.find(" -> ");
      const size_t cut = std::min(colon, arrow);
      EXPECT_NE(cut, std::string::npos) << line;
      if (cut != std::string::npos) sysfs.Set(line.substr(0, cut), line.substr(cut + (cut == colon ? 2 : 4)));
    }
    return sysfs;
  }

  // A file's text, or where a link points.
  void Set(const std::string& path, const std::string& text) { files_[path] = text; }
  void Remove(const std::string& path) { files_.erase(path); }

  absl::StatusOr<std::string> Read(const std::string& path) const override {
    const auto found = files_.find(path);
    if (found == files_.end()) return absl::NotFoundError(absl::StrCat(path, ": no such file"));
    return found->second;
  }
  // Unlike a real one, what it opened goes with the name.
  absl::StatusOr<std::unique_ptr<SysfsFile>> Open(const std::string& path) const override {
    if (auto text = Read(path); !text.ok()) return text.status();
    ++opened_;
    return std::make_unique<File>(this, path);
  }
  int opened() const { return opened_; }
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
  class File final : public SysfsFile {
   public:
    File(const FakeSysfs* sysfs, std::string path) : sysfs_(sysfs), path_(std::move(path)) {}
    absl::StatusOr<std::string> Read() override { return sysfs_->Read(path_); }

   private:
    const FakeSysfs* const sysfs_;
    const std::string path_;
  };

  std::map<std::string, std::string> files_;
  mutable int opened_ = 0;
};

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_IO_FAKE_SYSFS_H_
