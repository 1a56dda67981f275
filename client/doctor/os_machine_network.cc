#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netdb.h>
#include <netinet/ether.h>
#include <netinet/if_ether.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip_icmp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/core/clock.h"
#include "base/core/route.h"
#include "base/core/unique_fd.h"
#include "client/doctor/os_machine.h"

namespace r2cc::client {
namespace {

// A machine that is busy answers late; one packet may be lost.
constexpr int kTries = 3;
constexpr int kTryMs = 700;
constexpr int kTcpMs = 2000;
// RFC 5227 waits so long for other owners of an address, and a little more.
constexpr int kOwnersMs = 600;
constexpr int kIcmpHeaderBytes = 8;
constexpr int kIpHeaderBytes = 20;

int64_t NowMs() { return SteadyClock().Now() / kNanosPerMs; }

absl::StatusOr<sockaddr_in> V4(const std::string& text, uint16_t port = 0) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  if (inet_pton(AF_INET, text.c_str(), &address.sin_addr) != 1)
    return absl::UnimplementedError(absl::StrCat(text, " is no IPv4 address, and others are not looked at"));
  return address;
}

const sockaddr* Any(const sockaddr_in& address) { return reinterpret_cast<const sockaddr*>(&address); }

absl::Status Errno(const std::string& what) { return absl::ErrnoToStatus(errno, what); }

absl::Status Bind(int fd, const Source& source) {
  if (!source.interface.empty() &&
      setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, source.interface.c_str(), static_cast<socklen_t>(source.interface.size())) != 0)
    return Errno(absl::StrCat("cannot bind to ", source.interface));
  const auto address = V4(source.address);
  if (!address.ok()) return address.status();
  if (bind(fd, Any(*address), sizeof(*address)) != 0) return Errno(absl::StrCat("cannot bind to ", source.address));
  return absl::OkStatus();
}

uint16_t Checksum(const std::string& packet) {
  uint32_t sum = 0;
  for (size_t i = 0; i + 1 < packet.size(); i += 2) {
    uint16_t word = 0;
    std::memcpy(&word, packet.data() + i, sizeof(word));
    sum += word;
  }
  if (packet.size() % 2 == 1) sum += static_cast<uint8_t>(packet.back());
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint16_t>(~sum);
}

// Connects within `timeout_ms`: 0, or the error; ETIMEDOUT without an answer.
int ConnectError(int fd, const sockaddr* address, socklen_t bytes, int timeout_ms) {
  if (connect(fd, address, bytes) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  pollfd ready{fd, POLLOUT, 0};
  if (poll(&ready, 1, timeout_ms) != 1) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof(error);
  getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

}  // namespace

absl::StatusOr<std::string> OsMachine::Route(const std::string& address, const std::string& destination) {
  int failure = 0;
  char name[IF_NAMESIZE] = {};
  const int index = RouteInterface(address, destination, &failure);
  if (index != 0 && if_indextoname(static_cast<unsigned>(index), name) != nullptr) return std::string(name);
  return absl::ErrnoToStatus(failure == 0 ? errno : failure, absl::StrCat("no route from ", address, " to ", destination));
}

absl::Status OsMachine::Ping(const Source& source, const std::string& destination, int bytes) {
  const auto target = V4(destination);
  if (!target.ok()) return target.status();
  // A user without the right to a raw socket gets one for echoes alone, if net.ipv4.ping_group_range permits it.
  const int echo = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_ICMP);
  const bool raw = echo < 0;
  const UniqueFd fd(raw ? socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP) : echo);
  if (!fd) return absl::PermissionDeniedError("needs root to send pings here, or net.ipv4.ping_group_range with this user's group in it");
  if (absl::Status status = Bind(fd.get(), source); !status.ok()) return status;
  const int probe = IP_PMTUDISC_PROBE;
  setsockopt(fd.get(), IPPROTO_IP, IP_MTU_DISCOVER, &probe, sizeof(probe));
  std::string packet(static_cast<size_t>(std::max(bytes - kIpHeaderBytes, kIcmpHeaderBytes)), 'r');
  for (int turn = 1; turn <= kTries; ++turn) {
    icmphdr header{};
    header.type = ICMP_ECHO;
    header.un.echo.id = htons(static_cast<uint16_t>(getpid()));
    header.un.echo.sequence = htons(static_cast<uint16_t>(turn));
    std::memcpy(packet.data(), &header, sizeof(header));
    header.checksum = Checksum(packet);
    std::memcpy(packet.data(), &header, sizeof(header));
    if (sendto(fd.get(), packet.data(), packet.size(), 0, Any(*target), sizeof(*target)) < 0) {
      if (errno == EMSGSIZE) return absl::DeadlineExceededError(absl::StrCat("the own interface takes no ", bytes, " bytes"));
      return Errno(absl::StrCat("cannot send to ", destination));
    }
    for (const int64_t end = NowMs() + kTryMs; NowMs() < end;) {
      pollfd ready{fd.get(), POLLIN, 0};
      if (poll(&ready, 1, static_cast<int>(std::max<int64_t>(end - NowMs(), 1))) != 1) break;
      char reply[256];
      sockaddr_in from{};
      socklen_t size = sizeof(from);
      const ssize_t got = recvfrom(fd.get(), reply, sizeof(reply), 0, reinterpret_cast<sockaddr*>(&from), &size);
      if (got < 0) break;
      const size_t offset = raw ? static_cast<size_t>(reply[0] & 0x0f) * 4 : 0;
      icmphdr answer{};
      if (static_cast<size_t>(got) < offset + sizeof(answer) || from.sin_addr.s_addr != target->sin_addr.s_addr) continue;
      std::memcpy(&answer, reply + offset, sizeof(answer));
      if (answer.type == ICMP_ECHOREPLY && (!raw || answer.un.echo.id == header.un.echo.id)) return absl::OkStatus();
    }
  }
  return absl::DeadlineExceededError("no answer");
}

absl::Status OsMachine::TcpAnswers(const Source& source, const std::string& destination, uint16_t port) {
  const auto target = V4(destination, port);
  if (!target.ok()) return target.status();
  const UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (absl::Status status = Bind(fd.get(), source); !status.ok()) return status;
  const int error = ConnectError(fd.get(), Any(*target), sizeof(*target), kTcpMs);
  if (error == 0 || error == ECONNREFUSED) return absl::OkStatus();
  const std::string what = absl::StrCat("TCP port ", port, ": ", error == ETIMEDOUT ? "no answer" : std::strerror(error));
  // A reply of a router or a firewall is no answer of the host.
  if (error == ETIMEDOUT || error == EHOSTUNREACH || error == EACCES || error == EPERM) return absl::DeadlineExceededError(what);
  return absl::UnavailableError(what);
}

absl::Status OsMachine::TcpAccepts(const std::string& host, uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (const int error = getaddrinfo(host.c_str(), absl::StrCat(port).c_str(), &hints, &list); error != 0)
    return absl::NotFoundError(absl::StrCat("no address for ", host, ": ", gai_strerror(error)));
  int error = ETIMEDOUT;
  for (const addrinfo* one = list; one != nullptr; one = one->ai_next) {
    const UniqueFd fd(socket(one->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    error = ConnectError(fd.get(), one->ai_addr, one->ai_addrlen, kTcpMs);
    if (error == 0) break;
  }
  freeaddrinfo(list);
  if (error == 0) return absl::OkStatus();
  return absl::UnavailableError(error == ETIMEDOUT ? "no answer" : std::strerror(error));
}

absl::StatusOr<std::vector<std::string>> OsMachine::OtherOwners(const std::string& interface, const std::string& address) {
  const auto own = V4(address);
  if (!own.ok()) return own.status();
  const UniqueFd fd(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ARP)));
  if (!fd) return absl::PermissionDeniedError("needs root to ask by ARP whether another machine has its address");
  sockaddr_ll link{};
  link.sll_family = AF_PACKET;
  link.sll_protocol = htons(ETH_P_ARP);
  link.sll_ifindex = static_cast<int>(if_nametoindex(interface.c_str()));
  ifreq hardware{};
  std::strncpy(hardware.ifr_name, interface.c_str(), IFNAMSIZ - 1);
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&link), sizeof(link)) != 0 || ioctl(fd.get(), SIOCGIFHWADDR, &hardware) != 0)
    return Errno(absl::StrCat("cannot ask by ARP on ", interface));
  if (hardware.ifr_hwaddr.sa_family != ARPHRD_ETHER) return absl::UnimplementedError(absl::StrCat(interface, " is no Ethernet interface"));
  struct {
    ether_header ethernet;
    ether_arp arp;
  } request{};
  std::memset(request.ethernet.ether_dhost, 0xff, ETH_ALEN);
  std::memcpy(request.ethernet.ether_shost, hardware.ifr_hwaddr.sa_data, ETH_ALEN);
  request.ethernet.ether_type = htons(ETHERTYPE_ARP);
  request.arp.ea_hdr = {htons(ARPHRD_ETHER), htons(ETHERTYPE_IP), ETH_ALEN, 4, htons(ARPOP_REQUEST)};
  // Without an address of the sender, as RFC 5227 has it: nobody's table changes.
  std::memcpy(request.arp.arp_sha, hardware.ifr_hwaddr.sa_data, ETH_ALEN);
  std::memcpy(request.arp.arp_tpa, &own->sin_addr, sizeof(request.arp.arp_tpa));
  if (send(fd.get(), &request, sizeof(request), 0) < 0) return Errno(absl::StrCat("cannot ask by ARP on ", interface));
  std::set<std::string> owners;
  for (const int64_t end = NowMs() + kOwnersMs; NowMs() < end;) {
    pollfd ready{fd.get(), POLLIN, 0};
    if (poll(&ready, 1, static_cast<int>(std::max<int64_t>(end - NowMs(), 1))) != 1) break;
    if (recv(fd.get(), &request, sizeof(request), 0) < static_cast<ssize_t>(sizeof(request))) continue;
    if (request.arp.ea_hdr.ar_op != htons(ARPOP_REPLY) ||
        std::memcmp(request.arp.arp_spa, &own->sin_addr, sizeof(request.arp.arp_spa)) != 0 ||
        std::memcmp(request.arp.arp_sha, hardware.ifr_hwaddr.sa_data, ETH_ALEN) == 0)
      continue;
    char text[18];
    const uint8_t* const mac = request.arp.arp_sha;
    std::snprintf(text, sizeof(text), "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
    owners.insert(text);
  }
  return std::vector<std::string>(owners.begin(), owners.end());
}

}  // namespace r2cc::client
