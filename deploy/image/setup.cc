#include "deploy/image/setup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <system_error>
#include <utility>

namespace r2cc::setup {
namespace {

// Bits that a mode may have: what belongs to set-uid programs has no place on these directories.
constexpr uint32_t kModeMost = 0777;
// Of one call of sendfile().
constexpr size_t kCopyBytes = 1 << 20;
// A copy takes a second. One that began so long ago has been killed.
constexpr time_t kKilledAfterSeconds = 600;

bool Fail(std::string* error, std::string line) {
  *error = std::move(line);
  return false;
}

bool FailErrno(std::string* error, int number, const std::string& what) { return Fail(error, what + ": " + std::strerror(number)); }

bool ParseId(std::string_view text, uint32_t* id) {
  const char* const end = text.data() + text.size();
  const auto [last, problem] = std::from_chars(text.data(), end, *id);
  // The last number is nobody: chown(2) leaves the owner as it is.
  return problem == std::errc() && last == end && *id != static_cast<uint32_t>(-1);
}

// Copies of `name` that were killed half-way. `fresh`: a file that was made now, so its time is the file system's.
void RemoveLeftBehind(const std::string& folder, const std::string& name, int fresh) {
  struct stat now {};
  if (fstat(fresh, &now) != 0) return;
  DIR* const entries = opendir(folder.c_str());
  if (entries == nullptr) return;
  while (const dirent* const entry = readdir(entries)) {
    struct stat there {};
    if (!std::string_view(entry->d_name).starts_with(name + ".new") ||
        fstatat(dirfd(entries), entry->d_name, &there, AT_SYMLINK_NOFOLLOW) != 0)
      continue;
    if (S_ISREG(there.st_mode) && there.st_mtime + kKilledAfterSeconds < now.st_mtime) unlinkat(dirfd(entries), entry->d_name, 0);
  }
  closedir(entries);
}

}  // namespace

std::optional<Owner> ParseOwner(const std::string& text, std::string* error) {
  const std::string_view all = text;
  const size_t colon = all.find(':');
  Owner owner;
  if (colon != std::string_view::npos && ParseId(all.substr(0, colon), &owner.uid) && ParseId(all.substr(colon + 1), &owner.gid))
    return owner;
  *error = "'" + text + "' is not UID:GID, two numbers";
  return std::nullopt;
}

std::optional<Directory> ParseDirectory(const std::string& text, std::string* error) {
  const size_t colon = text.rfind(':');
  const std::string digits = colon == std::string::npos ? "" : text.substr(colon + 1);
  uint32_t mode = 0;
  bool is_mode = digits.size() == 3 || digits.size() == 4;
  for (const char digit : digits) {
    is_mode = is_mode && digit >= '0' && digit <= '7';
    mode = mode * 8 + static_cast<uint32_t>(digit - '0');
  }
  if (is_mode && mode <= kModeMost && text[0] == '/') return Directory{text.substr(0, colon), static_cast<mode_t>(mode)};
  *error = "'" + text + "' is not PATH:MODE, an absolute path and three or four octal digits";
  return std::nullopt;
}

bool HandOver(const Directory& directory, const Owner& owner, std::string* error) {
  const std::string& path = directory.path;
  if (mkdir(path.c_str(), directory.mode) != 0 && errno != EEXIST) return FailErrno(error, errno, "cannot make " + path);
  struct stat there {};
  // Never through a link: a user who may write in the folder would choose what root gives away.
  if (lstat(path.c_str(), &there) != 0) return FailErrno(error, errno, path);
  if (!S_ISDIR(there.st_mode)) return Fail(error, path + " is no directory; remove it from the node");
  if (there.st_uid == owner.uid) return true;
  if (there.st_uid != geteuid())
    return Fail(error, path + " belongs to user " + std::to_string(there.st_uid) +
                           ", not to root: another r2ccd uses this node, perhaps a package's; stop and remove that one, or keep this node "
                           "out of the DaemonSet");
  // In this order: what is not one's own any more takes another capability.
  if (chmod(path.c_str(), directory.mode) != 0) return FailErrno(error, errno, "cannot set the mode of " + path);
  if (lchown(path.c_str(), owner.uid, owner.gid) != 0)
    return FailErrno(error, errno, "cannot give " + path + " to user " + std::to_string(owner.uid) + " (needs CAP_CHOWN)");
  return true;
}

bool CopyInto(const std::string& from, const std::string& to, std::string* error) {
  struct stat there {};
  if (stat(to.c_str(), &there) != 0 || !S_ISDIR(there.st_mode)) return Fail(error, to + " is no directory; mount the volume there");
  const std::string name = from.substr(from.rfind('/') + 1), target = to + "/" + name;
  // Another pod of the node may copy into the same directory.
  std::string temporary = target + ".new-XXXXXX";
  const int source = open(from.c_str(), O_RDONLY | O_CLOEXEC);
  const int copy = source < 0 ? -1 : mkostemp(temporary.data(), O_CLOEXEC);
  if (copy >= 0) RemoveLeftBehind(to, name, copy);
  ssize_t sent = copy < 0 ? -1 : 1;
  while (sent > 0) sent = sendfile(copy, source, nullptr, kCopyBytes);
  bool is_there = sent == 0 && fchmod(copy, 0755) == 0 && fsync(copy) == 0;
  int number = errno;
  if (source >= 0) close(source);
  if (copy >= 0) close(copy);
  if (is_there && rename(temporary.c_str(), target.c_str()) != 0) is_there = false, number = errno;
  if (!is_there && copy >= 0) unlink(temporary.c_str());
  return is_there || FailErrno(error, number, "cannot copy " + from + " to " + target);
}

}  // namespace r2cc::setup
