#include "client/local/certs.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/tls/authority.h"

namespace r2cc::client {
namespace {

constexpr mode_t kSecret = 0600;
constexpr mode_t kOwners = 0400;
constexpr mode_t kPublic = 0644;

struct Owner {
  uid_t uid = static_cast<uid_t>(-1);
  gid_t gid = static_cast<gid_t>(-1);

  bool given() const { return uid != static_cast<uid_t>(-1); }
};

absl::Status MakeDirectory(const std::string& path) {
  if (mkdir(path.c_str(), 0755) == 0 || errno == EEXIST) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot make the directory ", path));
}

// A whole file or none, in the place of one that is there. Nobody reads it before it has its owner and mode.
absl::Status WriteFile(const std::string& path, const std::string& text, mode_t mode, const Owner& owner = {}) {
  const std::string fresh = path + ".new";
  unlink(fresh.c_str());
  const int fd = open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, kSecret);
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", fresh));
  const bool owned = !owner.given() || fchown(fd, owner.uid, owner.gid) == 0;
  const bool written =
      owned && fchmod(fd, mode) == 0 && write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) && fsync(fd) == 0;
  const int error = errno;
  close(fd);
  if (written && rename(fresh.c_str(), path.c_str()) == 0) return absl::OkStatus();
  const absl::Status status = absl::ErrnoToStatus(written ? errno : error, absl::StrCat("cannot write ", path));
  unlink(fresh.c_str());
  return status;
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file)
    return absl::NotFoundError(absl::StrCat("cannot read ", path, ": `r2ccctl certs init` makes an authority; --dir names its directory"));
  return text.str();
}

absl::Status Init(const CertsCommand& command, int64_t now_s, std::ostream& out) {
  const std::string certificate = command.directory + "/ca.crt";
  const std::string key = command.directory + "/ca.key";
  for (const std::string& file : {certificate, key})
    if (access(file.c_str(), F_OK) == 0)
      return absl::AlreadyExistsError(
          absl::StrCat(file, " is there already: an authority is not replaced; name another directory with --dir"));
  if (absl::Status status = MakeDirectory(command.directory); !status.ok()) return status;
  const auto made = MakeAuthority(command.name, ForDays(now_s, command.days));
  if (!made.ok()) return made.status();
  if (absl::Status status = WriteFile(key, made->key, kSecret); !status.ok()) return status;
  if (absl::Status status = WriteFile(certificate, made->certificate, kPublic); !status.ok()) return status;
  out << "wrote " << certificate << ", and " << key << ", which signs for every node: keep it away from them\n" << std::flush;
  return absl::OkStatus();
}

absl::StatusOr<Owner> OwnerOf(const std::string& name) {
  if (name.empty()) return Owner{};
  if (const passwd* const entry = getpwnam(name.c_str()); entry != nullptr) return Owner{entry->pw_uid, entry->pw_gid};
  return absl::NotFoundError(absl::StrCat("this machine has no user '", name, "': install r2ccd before its certificate"));
}

absl::Status IssueOne(const CertsCommand& command, int64_t now_s, std::ostream& out) {
  const auto certificate = ReadFile(command.directory + "/ca.crt");
  if (!certificate.ok()) return certificate.status();
  const auto key = ReadFile(command.directory + "/ca.key");
  if (!key.ok()) return key.status();
  const Identity identity{command.is_operator ? Identity::Kind::kOperator : Identity::Kind::kNode, command.name};
  const auto issued = Issue({*certificate, *key}, identity, ForDays(now_s, command.days));
  if (!issued.ok()) return issued.status();
  const auto owner = OwnerOf(command.owner);
  if (!owner.ok()) return owner.status();
  const std::string directory = command.out_directory.empty() ? absl::StrCat(command.directory, "/", command.name) : command.out_directory;
  const std::string base = absl::StrCat(directory, "/", command.is_operator ? "operator" : "node");
  if (absl::Status status = MakeDirectory(directory); !status.ok()) return status;
  if (absl::Status status = WriteFile(base + ".key", issued->key, owner->given() ? kOwners : kSecret, *owner); !status.ok()) return status;
  if (absl::Status status = WriteFile(base + ".crt", issued->certificate, kPublic); !status.ok()) return status;
  if (absl::Status status = WriteFile(directory + "/ca.crt", *certificate, kPublic); !status.ok()) return status;
  out << "wrote " << base << ".crt and .key for " << Describe(identity) << ", until " << DateText(ForDays(now_s, command.days).not_after_s)
      << "\n";
  if (!command.is_operator && command.owner.empty())
    out << "on the node: copy them to /etc/r2cc/tls, then chown r2ccd: /etc/r2cc/tls/node.key && chmod 400 /etc/r2cc/tls/node.key\n";
  out << std::flush;
  return absl::OkStatus();
}

}  // namespace

absl::Status Run(const CertsCommand& command, int64_t now_s, std::ostream& out) {
  return command.init ? Init(command, now_s, out) : IssueOne(command, now_s, out);
}

}  // namespace r2cc::client
