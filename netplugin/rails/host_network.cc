#include "netplugin/rails/host_network.h"

#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string_view>

namespace r2cc::net {
namespace {

#ifndef IFF_LOWER_UP
constexpr unsigned IFF_LOWER_UP = 1u << 16;  // in <linux/if.h>, which cannot stand beside <net/if.h>
#endif

// A small file's number, or `otherwise`.
long ReadNumber(const std::string& path, long otherwise) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return otherwise;
  char text[32] = "";
  const ssize_t bytes = read(fd, text, sizeof(text) - 1);
  close(fd);
  if (bytes <= 0) return otherwise;  // e.g. the speed of an interface that is down
  char* end = text;
  const long number = std::strtol(text, &end, 10);
  return end == text ? otherwise : number;
}

std::string RealPath(const std::string& path) {
  char resolved[PATH_MAX];
  return realpath(path.c_str(), resolved) == nullptr ? "" : resolved;
}

bool IsDirectory(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

bool IsPciAddress(std::string_view text) {  // 0000:81:00.0
  constexpr std::string_view kPattern = "hhhh:hh:hh.h";
  if (text.size() != kPattern.size()) return false;
  for (size_t i = 0; i < text.size(); ++i)
    if (kPattern[i] == 'h' ? !std::isxdigit(static_cast<unsigned char>(text[i])) : text[i] != kPattern[i]) return false;
  return true;
}

// sysfs shows the interfaces of the namespace that it was mounted in, which need not be ours: it is believed about an interface only
// if it has the same number.
void AddSysfs(const std::string& sysfs, HostInterface* interface) {
  const std::string folder = sysfs + "/class/net/" + interface->name;
  if (ReadNumber(folder + "/ifindex", -1) != interface->ifindex) return;
  interface->device_path = RealPath(folder + "/device");
  interface->bridge = IsDirectory(folder + "/bridge");
  const long speed = ReadNumber(folder + "/speed", 0);
  interface->speed_mbps = speed > 0 && speed <= INT_MAX ? static_cast<int>(speed) : 0;
}

void AddLink(const ifaddrs& entry, HostInterface* interface) {
  sockaddr_ll link;
  std::memcpy(&link, entry.ifa_addr, sizeof(link));
  interface->ifindex = link.sll_ifindex;
  interface->loopback = (entry.ifa_flags & IFF_LOOPBACK) != 0;
  interface->admin_up = (entry.ifa_flags & IFF_UP) != 0;
  interface->carrier_up = (entry.ifa_flags & IFF_LOWER_UP) != 0 && (entry.ifa_flags & IFF_RUNNING) != 0;
  if (link.sll_halen == interface->mac.size()) std::memcpy(interface->mac.data(), link.sll_addr, interface->mac.size());
}

}  // namespace

bool HasRoutableAddress(const HostInterface& interface) {
  return std::any_of(interface.addresses.begin(), interface.addresses.end(), [](const IpAddress& a) { return !a.IsLinkLocalV6(); });
}

PciFunction PciFunctionOf(std::string path) {
  while (!path.empty()) {
    const size_t slash = path.rfind('/');
    if (slash == std::string::npos) break;
    if (IsPciAddress(std::string_view(path).substr(slash + 1))) return {path, path.substr(slash + 1)};
    path.resize(slash);
  }
  return {};
}

std::vector<HostInterface> SystemHostNetwork::Interfaces() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return {};
  std::map<std::string, HostInterface> by_name;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || entry->ifa_name == nullptr) continue;
    std::string name = entry->ifa_name;
    name = name.substr(0, name.find(':'));  // "eth0:1" is a label of an address of eth0
    HostInterface& interface = by_name[name];
    interface.name = name;
    if (entry->ifa_addr->sa_family == AF_PACKET) {
      AddLink(*entry, &interface);
    } else if (auto address = FromSockaddr(entry->ifa_addr)) {
      interface.addresses.push_back(*address);
    }
  }
  freeifaddrs(list);
  std::map<int, HostInterface> by_index;
  for (auto& [name, interface] : by_name) {
    if (interface.ifindex <= 0) continue;  // removed between the two questions that getifaddrs asks
    AddSysfs(sysfs_, &interface);
    by_index[interface.ifindex] = std::move(interface);
  }
  std::vector<HostInterface> interfaces;
  for (auto& [index, interface] : by_index) interfaces.push_back(std::move(interface));
  return interfaces;
}

uint64_t SystemHostNetwork::NetnsInode() {
  struct stat status {};
  return stat("/proc/thread-self/ns/net", &status) == 0 ? status.st_ino : 0;
}

std::string SystemHostNetwork::PciPath(const std::string& pci) { return pci.empty() ? "" : RealPath(sysfs_ + "/bus/pci/devices/" + pci); }

}  // namespace r2cc::net
