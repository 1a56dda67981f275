#include "client/core/start_hint.h"

#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "base/run_dirs.h"

namespace r2cc::client {
namespace {

constexpr char kUnitsRunDir[] = "/run/r2cc";

bool IsThere(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

}  // namespace

bool HasUnit(const std::string& root) {
  if (!IsThere(root + "/run/systemd/system")) return false;
  for (const char* folder : {"/etc/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"})
    if (IsThere(absl::StrCat(root, folder, "/r2ccd.service"))) return true;
  return false;
}

std::string HowToStart(const std::string& socket_path, bool has_unit) {
  const std::string run_dir = RunDirOf(socket_path);
  if (has_unit && run_dir == kUnitsRunDir) return "`systemctl start r2ccd` starts it, `systemctl status r2ccd` shows why it ended";
  return absl::StrCat("start it with `r2ccd --run_dir=", run_dir, " --config=FILE`, or name another with --run_dir or --socket");
}

}  // namespace r2cc::client
