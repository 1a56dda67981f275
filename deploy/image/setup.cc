#include "deploy/image/setup.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace r2cc::setup {
namespace {

// Bits that a mode may have: what belongs to set-uid programs has no place on these directories.
constexpr uint32_t kModeMost = 0777;

absl::Status Failed(int error, const std::string& what) { return absl::ErrnoToStatus(error, what); }

bool ParseId(std::string_view text, uint32_t* id) {
  // The last number is nobody: chown(2) leaves the owner as it is.
  return absl::SimpleAtoi(std::string(text), id) && *id != static_cast<uint32_t>(-1);
}

}  // namespace

absl::StatusOr<Owner> ParseOwner(std::string_view text) {
  const size_t colon = text.find(':');
  uint32_t uid = 0, gid = 0;
  if (colon == std::string_view::npos || !ParseId(text.substr(0, colon), &uid) || !ParseId(text.substr(colon + 1), &gid))
    return absl::InvalidArgumentError(absl::StrCat("'", std::string(text), "' is not UID:GID, two numbers"));
  return Owner{uid, gid};
}

absl::StatusOr<Directory> ParseDirectory(std::string_view text) {
  const size_t colon = text.rfind(':');
  const std::string wrong = absl::StrCat("'", std::string(text), "' is not PATH:MODE, an absolute path and three or four octal digits");
  if (colon == std::string_view::npos || colon == 0 || text[0] != '/') return absl::InvalidArgumentError(wrong);
  const std::string_view digits = text.substr(colon + 1);
  uint32_t mode = 0;
  if (digits.size() < 3 || digits.size() > 4) return absl::InvalidArgumentError(wrong);
  for (const char digit : digits) {
    if (digit < '0' || digit > '7') return absl::InvalidArgumentError(wrong);
    mode = mode * 8 + static_cast<uint32_t>(digit - '0');
  }
  if (mode > kModeMost) return absl::InvalidArgumentError(wrong);
  return Directory{std::string(text.substr(0, colon)), static_cast<mode_t>(mode)};
}

absl::Status HandOver(const Directory& directory, const Owner& owner) {
  const std::string& path = directory.path;
  if (mkdir(path.c_str(), directory.mode) != 0 && errno != EEXIST) return Failed(errno, absl::StrCat("cannot make ", path));
  struct stat there {};
  // Never through a link: who may write beside it would choose whom root gives what.
  if (lstat(path.c_str(), &there) != 0) return Failed(errno, path);
  if (!S_ISDIR(there.st_mode)) return absl::FailedPreconditionError(absl::StrCat(path, " is no directory; remove it from the node"));
  if (there.st_uid == owner.uid) return absl::OkStatus();
  if (there.st_uid != geteuid())
    return absl::FailedPreconditionError(absl::StrCat(path, " belongs to user ", there.st_uid,
                                                      ", not to root: another r2ccd uses this node, perhaps a package's; "
                                                      "stop and remove that one, or keep this node out of the DaemonSet"));
  // In this order: what is not one's own any more takes another capability.
  if (chmod(path.c_str(), directory.mode) != 0) return Failed(errno, absl::StrCat("cannot set the mode of ", path));
  if (lchown(path.c_str(), owner.uid, owner.gid) != 0)
    return Failed(errno, absl::StrCat("cannot give ", path, " to user ", owner.uid, " (needs CAP_CHOWN)"));
  return absl::OkStatus();
}

absl::Status CopyInto(const std::string& from, const std::string& to) {
  namespace fs = std::filesystem;
  const fs::path target = fs::path(to) / fs::path(from).filename();
  const fs::path beside = target.string() + ".new";
  std::error_code error;
  if (!fs::is_directory(to, error)) return absl::NotFoundError(absl::StrCat(to, " is no directory; mount the volume there"));
  fs::copy_file(from, beside, fs::copy_options::overwrite_existing, error);
  if (!error) fs::permissions(beside, static_cast<fs::perms>(0755), error);
  if (!error) fs::rename(beside, target, error);
  if (error) return Failed(error.value(), absl::StrCat("cannot copy ", from, " to ", target.string()));
  return absl::OkStatus();
}

}  // namespace r2cc::setup
