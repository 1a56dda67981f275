#include "client/doctor/os_machine.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/core/interfaces.h"
#include "base/core/unique_fd.h"

namespace r2cc::client {
namespace {

constexpr size_t kFileBytesMax = 64 << 10;

absl::Status ConnectUnix(int fd, const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path))
    return absl::InvalidArgumentError(absl::StrCat("'", path, "' is no path of a Unix socket"));
  std::memcpy(address.sun_path, path.data(), path.size());
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, path);
}

}  // namespace

absl::StatusOr<std::string> OsMachine::Read(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", path));
  std::string text(kFileBytesMax, '\0');
  const ssize_t got = read(fd.get(), text.data(), text.size());
  if (got < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", path));
  text.resize(static_cast<size_t>(got));
  absl::StripAsciiWhitespace(&text);
  return text;
}

std::vector<LocalInterface> OsMachine::Interfaces() {
  std::map<std::string, LocalInterface> all;
  for (const Interface& interface : ReadInterfaces()) {
    if (interface.loopback) continue;
    LocalInterface& facts = all[interface.name];
    facts.name = interface.name;
    facts.up = interface.admin_up;
    for (const InterfaceAddress& address : interface.addresses)
      facts.addresses.push_back({address.text, address.prefix_bits, address.state});
  }
  std::vector<LocalInterface> interfaces;
  for (auto& [name, facts] : all) {
    if (const auto mtu = Read(absl::StrCat("/sys/class/net/", name, "/mtu")); mtu.ok()) (void)absl::SimpleAtoi(*mtu, &facts.mtu);
    interfaces.push_back(std::move(facts));
  }
  return interfaces;
}

absl::Status OsMachine::UnixAccepts(const std::string& path) {
  const UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  return ConnectUnix(fd.get(), path);
}

absl::StatusOr<int> OsMachine::ListenerPid(const std::string& path) {
  const UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (absl::Status status = ConnectUnix(fd.get(), path); !status.ok()) return status;
  ucred listener{};
  socklen_t size = sizeof(listener);
  if (getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &listener, &size) != 0) return absl::ErrnoToStatus(errno, path);
  if (listener.pid <= 0) return absl::NotFoundError(absl::StrCat(path, ": its process has no number here, it runs in a container"));
  return listener.pid;
}

absl::StatusOr<ProcessFacts> OsMachine::Process(int pid) {
  ProcessFacts facts;
  facts.pid = pid;
  const auto limits = Read(absl::StrCat("/proc/", pid, "/limits"));
  if (!limits.ok())
    return absl::Status(limits.status().code(),
                        absl::StrCat("r2ccd (pid ", pid, ") is not to be seen: /proc hides it, or it is in another pid namespace"));
  for (const absl::string_view line : absl::StrSplit(*limits, '\n')) {
    constexpr absl::string_view kOpenFiles = "Max open files";
    if (line.substr(0, kOpenFiles.size()) != kOpenFiles) continue;
    const std::vector<absl::string_view> words = absl::StrSplit(line.substr(kOpenFiles.size()), ' ', absl::SkipEmpty());
    if (!words.empty() && !absl::SimpleAtoi(words.front(), &facts.open_files_max)) facts.open_files_max = UINT64_MAX;
  }
  const int policy = sched_getscheduler(pid);
  facts.realtime = policy == SCHED_RR || policy == SCHED_FIFO;
  errno = 0;
  facts.nice = getpriority(PRIO_PROCESS, static_cast<id_t>(pid));
  return facts;
}

uint64_t OsMachine::LockedMemoryMax() {
  rlimit limit{};
  return getrlimit(RLIMIT_MEMLOCK, &limit) == 0 ? limit.rlim_cur : 0;
}

}  // namespace r2cc::client
