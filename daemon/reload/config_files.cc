#include "daemon/reload/config_files.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "daemon/io/files.h"

namespace r2cc::daemon {
namespace {

constexpr char kEnding[] = ".textproto";

}  // namespace

std::string ConfigDirectory(const std::string& file) {
  const std::filesystem::path path(file);
  if (path.extension() != kEnding) return "";
  std::filesystem::path directory = path;
  return directory.replace_extension(".d");
}

absl::StatusOr<std::vector<ConfigText>> ReadConfigFiles(const std::string& file) {
  std::vector<std::string> names = {file};
  if (const std::string directory = ConfigDirectory(file); !directory.empty()) {
    std::error_code error;
    std::vector<std::string> more;
    for (std::filesystem::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error))
      if (entry->path().extension() == kEnding) more.push_back(entry->path());
    if (error && error != std::errc::no_such_file_or_directory)
      return absl::FailedPreconditionError(absl::StrCat("cannot read the directory ", directory, ": ", error.message()));
    if (more.size() >= kConfigFilesMax)
      return absl::FailedPreconditionError(
          absl::StrCat(directory, " has ", more.size(), " files, and at most ", kConfigFilesMax - 1, " are read"));
    std::sort(more.begin(), more.end());
    names.insert(names.end(), more.begin(), more.end());
  }
  OsFiles files;
  std::vector<ConfigText> texts;
  for (const std::string& name : names) {
    auto text = files.Read(name);
    if (!text.ok()) return text.status();
    texts.push_back({name, *std::move(text)});
  }
  return texts;
}

}  // namespace r2cc::daemon
