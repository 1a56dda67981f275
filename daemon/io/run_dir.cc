#include "daemon/io/run_dir.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include <climits>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/run_dirs.h"

namespace r2cc::daemon {
namespace {

constexpr mode_t kRunDirMode = 0755;
constexpr mode_t kControlDirMode = 0750;

// OK if `path` was made. ALREADY_EXISTS: it was there.
absl::Status MakeDir(const std::string& path, mode_t mode, const char* what) {
  if (mkdir(path.c_str(), mode) == 0 && chmod(path.c_str(), mode) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot make the ", what, " directory ", path, " (--run_dir)"));
}

bool LetsOthersIn(const std::string& path) {
  struct stat there {};
  return stat(path.c_str(), &there) == 0 && (there.st_mode & S_IXOTH) != 0;
}

// From the run directory: wherever both directories are mounted as siblings it leads to the socket.
std::string LinkTarget(const std::string& run_dir) {
  const std::string socket = ControlSocket(run_dir);
  const size_t folder = socket.rfind('/', socket.rfind('/') - 1);
  return absl::StrCat("../", folder == std::string::npos ? socket : socket.substr(folder + 1));
}

}  // namespace

absl::Status MakeRunDir(const std::string& run_dir) {
  const absl::Status made = MakeDir(run_dir, kRunDirMode, "run");
  if (!absl::IsAlreadyExists(made)) return made;
  if (!LetsOthersIn(run_dir)) LogWarning("jobs of ordinary users cannot attach: chmod o+x the run directory", {{"directory", run_dir}});
  return absl::OkStatus();
}

absl::Status MakeControlDir(const std::string& run_dir) {
  const std::string path = ControlDir(run_dir);
  const absl::Status made = MakeDir(path, kControlDirMode, "control");
  if (!absl::IsAlreadyExists(made)) return made;
  if (LetsOthersIn(path))
    LogWarning("every user of this machine reaches the control socket; chmod 0750 the control directory unless that is wanted",
               {{"directory", path}});
  return absl::OkStatus();
}

absl::Status LinkOldControlSocket(const std::string& run_dir) {
  const std::string path = OldControlSocket(run_dir);
  // The socket of a 0.2.0 that died, or a link of a former run.
  if (unlink(path.c_str()) != 0 && errno != ENOENT) return absl::ErrnoToStatus(errno, absl::StrCat("cannot remove ", path));
  if (symlink(LinkTarget(run_dir).c_str(), path.c_str()) != 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot make ", path));
  return absl::OkStatus();
}

bool IsOldControlSocketLinked(const std::string& run_dir) {
  char target[PATH_MAX];
  const ssize_t size = readlink(OldControlSocket(run_dir).c_str(), target, sizeof(target));
  return size > 0 && std::string(target, static_cast<size_t>(size)) == LinkTarget(run_dir);
}

void UnlinkOldControlSocket(const std::string& run_dir) {
  if (IsOldControlSocketLinked(run_dir)) unlink(OldControlSocket(run_dir).c_str());
}

}  // namespace r2cc::daemon
