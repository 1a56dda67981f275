#include "client/start_hint.h"

#include <unistd.h>

#include "absl/strings/str_cat.h"

namespace r2cc::client {
namespace {

// The run directory of the unit.
constexpr char kUnitsSocket[] = "/run/r2cc/r2ccd.sock";

bool IsThere(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

}  // namespace

bool HasUnit(const std::string& root) {
  if (!IsThere(root + "/run/systemd/system")) return false;
  for (const char* folder : {"/etc/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"})
    if (IsThere(absl::StrCat(root, folder, "/r2ccd.service"))) return true;
  return false;
}

std::string HowToStart(const std::string& socket_path, bool has_unit) {
  if (has_unit && socket_path == kUnitsSocket) return "`systemctl start r2ccd` starts it, `systemctl status r2ccd` says why it ended";
  const size_t slash = socket_path.rfind('/');
  const std::string run_dir = slash == std::string::npos ? "." : slash == 0 ? "/" : socket_path.substr(0, slash);
  return absl::StrCat("start it with `r2ccd --run_dir=", run_dir, " --config=FILE`, or name another with --run_dir or --socket");
}

}  // namespace r2cc::client
