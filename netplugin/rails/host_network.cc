#include "netplugin/rails/host_network.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "base/core/interfaces.h"
#include "base/core/route.h"

namespace r2cc::net {
namespace {

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

HostInterface FromKernel(const Interface& from) {
  HostInterface interface;
  interface.name = from.name;
  interface.other_names = from.other_names;
  interface.ifindex = from.ifindex;
  interface.loopback = from.loopback;
  interface.dummy = from.dummy;
  interface.admin_up = from.admin_up;
  interface.carrier_up = from.carrier_up;
  interface.mac = from.mac;
  for (const InterfaceAddress& one : from.addresses) {
    auto address = ParseIpAddress(one.text, from.ifindex);
    if (!address) continue;
    address->prefix_bits = one.prefix_bits;
    address->state = one.state;
    interface.addresses.push_back(*std::move(address));
  }
  return interface;
}

}  // namespace

bool HasRoutableAddress(const HostInterface& interface) {
  return std::any_of(interface.addresses.begin(), interface.addresses.end(),
                     [](const IpAddress& a) { return IsRoutable(a.text, a.state); });
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
  std::vector<HostInterface> interfaces;
  for (const Interface& one : ReadInterfaces()) {
    interfaces.push_back(FromKernel(one));
    AddSysfs(sysfs_, &interfaces.back());
  }
  return interfaces;
}

bool SystemHostNetwork::AnswersForOthers(const std::string& interface) {
  // The kernel takes the greater one. A file that cannot be read is that of an interface that is gone, or of a sandbox. With arp_filter an
  // interface answers where the way back is its own.
  for (const std::string& of : {std::string("all"), interface})
    for (const char* name : {"/arp_ignore", "/arp_filter"})
      if (ReadNumber("/proc/sys/net/ipv4/conf/" + of + name, 1) != 0) return false;
  return true;
}

int SystemHostNetwork::RouteInterface(const IpAddress& from, const std::string& to) {
  int failure = 0;
  return r2cc::RouteInterface(from.text, to, &failure);
}

uint64_t SystemHostNetwork::NetnsInode() {
  struct stat status {};
  return stat("/proc/thread-self/ns/net", &status) == 0 ? status.st_ino : 0;
}

std::string SystemHostNetwork::PciPath(const std::string& pci) { return pci.empty() ? "" : RealPath(sysfs_ + "/bus/pci/devices/" + pci); }

}  // namespace r2cc::net
