#include "daemon/io/process_origin.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <sstream>
#include <string_view>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace r2cc::daemon {
namespace {

// A node of Kubernetes has thousands of mounts; the root's is among the first.
constexpr size_t kFileBytesMax = 32 << 10;
// Characters of a container's number in the names of runtimes.
constexpr size_t kIdCharsMin = 32;

std::string ReadProc(pid_t pid, const char* name) {
  const std::string path = absl::StrCat("/proc/", pid == 0 ? "self" : absl::StrCat(pid), "/", name);
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return "";
  char text[kFileBytesMax];
  size_t size = 0;
  // /proc gives a page at a time.
  for (ssize_t got; size < sizeof(text) && (got = read(fd, text + size, sizeof(text) - size)) > 0;) size += static_cast<size_t>(got);
  close(fd);
  return std::string(text, size);
}

// "NSpid:" has a number for each pid namespace from the reader's on.
bool InPidNamespaceOfItsOwn(const std::string& status) {
  constexpr std::string_view kLine = "\nNSpid:";
  const size_t at = status.find(kLine);
  if (at == std::string::npos) return false;  // a kernel before 4.1
  const size_t begin = at + kLine.size();
  std::istringstream numbers(status.substr(begin, status.find('\n', begin) - begin));
  int count = 0;
  for (int64_t number; numbers >> number;) ++count;
  return count > 1;
}

// The device and the directory there that "/" shows: "8:1 /". Empty: none, as in a plain chroot.
std::string RootOf(const std::string& mountinfo) {
  for (const absl::string_view line : absl::StrSplit(mountinfo, '\n')) {
    const std::vector<absl::string_view> parts = absl::StrSplit(line, absl::MaxSplits(' ', 5));
    if (parts.size() == 6 && parts[4] == "/") return absl::StrCat(parts[2], " ", parts[3]);
  }
  return "";
}

bool NamesATenant(absl::string_view part) {
  // A person of systemd-logind, a job of Slurm, a pod, a scope (each container of Docker, Podman and CRI-O under systemd is one).
  if ((absl::StartsWith(part, "user-") && absl::EndsWith(part, ".slice")) || absl::StartsWith(part, "job_")) return true;
  if (absl::StrContains(part, "pod") && std::count(part.begin(), part.end(), '-') + std::count(part.begin(), part.end(), '_') >= 4)
    return true;
  // A container of a runtime without systemd has its number as its name.
  const auto is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return (absl::EndsWith(part, ".scope") && part != "slurmstepd.scope") ||
         (part.size() >= kIdCharsMin && std::all_of(part.begin(), part.end(), is_hex));
}

}  // namespace

ProcessView ViewProcess(pid_t pid) { return {ReadProc(pid, "status"), ReadProc(pid, "uid_map"), ReadProc(pid, "mountinfo")}; }
std::string CgroupOf(pid_t pid) { return ReadProc(pid, "cgroup"); }

std::vector<uint32_t> PeerGroups(int fd) {
  static_assert(sizeof(gid_t) == sizeof(uint32_t));
  // A directory service gives a user hundreds of groups: with ERANGE the kernel returns the number.
  std::vector<uint32_t> groups(64);
  socklen_t bytes = static_cast<socklen_t>(groups.size() * sizeof(groups[0]));
  int result = getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &bytes);
  if (result != 0 && errno == ERANGE) {
    groups.resize(bytes / sizeof(groups[0]));
    result = getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &bytes);
  }
  groups.resize(result == 0 ? bytes / sizeof(groups[0]) : 0);
  return groups;
}

bool IsContained(const ProcessView& own, const ProcessView& other) {
  return other.status.empty() || InPidNamespaceOfItsOwn(other.status) || other.uid_map != own.uid_map ||
         RootOf(other.mountinfo) != RootOf(own.mountinfo);
}

std::string TenantOf(const std::string& cgroup) {
  // "0::/a/b" of version 2; of version 1 the first hierarchy with a path does as well.
  for (const absl::string_view line : absl::StrSplit(cgroup, '\n')) {
    const std::vector<absl::string_view> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() < 3 || parts[2].size() < 2) continue;
    std::string tenant;
    for (const absl::string_view part : absl::StrSplit(parts[2], '/', absl::SkipEmpty())) {
      absl::StrAppend(&tenant, "/", part);
      if (NamesATenant(part)) break;
    }
    return tenant;
  }
  return "";
}

}  // namespace r2cc::daemon
