#include "daemon/io/offered_rails.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"

namespace r2cc::daemon {

absl::Status OfferRails(const std::string& directory, const RailsFile& rails) {
  const std::string path = absl::StrCat(directory, "/", kRailsFileName);
  if (rails.rails.empty())
    return unlink(path.c_str()) == 0 || errno == ENOENT ? absl::OkStatus()
                                                        : absl::ErrnoToStatus(errno, absl::StrCat("cannot remove ", path));
  const std::string text = FormatRailsFile(rails);
  const std::string temporary = path + ".new";
  const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", temporary));
  // Independent of the umask.
  const bool written = fchmod(fd, 0644) == 0 && write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const int error = errno;
  if (close(fd) == 0 && written && rename(temporary.c_str(), path.c_str()) == 0) return absl::OkStatus();
  const absl::Status status = absl::ErrnoToStatus(written ? errno : error, absl::StrCat("cannot write ", path));
  unlink(temporary.c_str());
  return status;
}

}  // namespace r2cc::daemon
