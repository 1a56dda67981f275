#include "netplugin/rails/daemon_rails.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/core/rails_file.h"
#include "netplugin/rails/port_rails.h"

namespace r2cc::net {
namespace {

// The port's name with this GUID, "guid:0x...", among `ports`; empty: there is none.
std::string PortWithGuid(const std::string& rail, std::span<const verbs::PortFacts> ports) {
  for (const verbs::PortFacts& port : ports) {
    char guid[32];
    std::snprintf(guid, sizeof(guid), "guid:0x%016llx", static_cast<unsigned long long>(port.guid));
    if (port.guid != 0 && rail == guid) return PortName(port, ports);
  }
  return "";
}

bool Exists(const std::string& rail, const std::vector<HostInterface>& interfaces) {
  const auto address = ParseIpAddress(rail);
  if (address.has_value() && address->IsLoopback()) return true;
  return std::any_of(interfaces.begin(), interfaces.end(), [&](const HostInterface& interface) {
    if (!address.has_value()) return interface.name == rail;
    return std::any_of(interface.addresses.begin(), interface.addresses.end(),
                       [&](const IpAddress& one) { return one.text == address->text; });
  });
}

}  // namespace

std::optional<std::string> ReadRailsFile(const std::string& attach_socket) {
  if (attach_socket.empty()) return std::nullopt;
  const std::string path = attach_socket.substr(0, attach_socket.rfind('/') + 1) + kRailsFileName;
  // Whatever is at the path: a pipe without a writer would be waited for.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return std::nullopt;
  struct stat there {};
  std::string text(kRailsFileBytesMax + 1, '\0');
  const bool file = fstat(fd, &there) == 0 && S_ISREG(there.st_mode);
  const ssize_t bytes = file ? read(fd, text.data(), text.size()) : -1;
  close(fd);
  if (bytes < 0) return std::nullopt;
  text.resize(static_cast<size_t>(bytes));
  return text;
}

std::string DaemonRails(const std::string& text, HostNetwork& host, std::span<const verbs::PortFacts> ports,
                        std::vector<std::string>* warnings) {
  const std::optional<RailsFile> file = ParseRailsFile(text);
  if (!file.has_value() || file->netns_inode == 0 || file->netns_inode != host.NetnsInode()) return "";
  const std::vector<HostInterface> interfaces = host.Interfaces();
  std::string spec;
  std::string missing;
  for (std::string rail : file->rails) {
    if (rail.starts_with("guid:")) {
      rail = PortWithGuid(rail, ports);
      // Where TCP alone is wanted an InfiniBand port is no rail.
      if (rail.empty()) continue;
    } else if (!Exists(rail, interfaces)) {
      missing += (missing.empty() ? "" : ", ") + rail;
      continue;
    }
    spec += (spec.empty() ? "" : ",") + rail;
  }
  if (!missing.empty() && !spec.empty())
    warnings->push_back("R2CC: this node does not have " + missing + ", a NIC of r2ccd: the job starts without that rail");
  return spec;
}

}  // namespace r2cc::net
