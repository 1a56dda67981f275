#include "netplugin/transport/tcp/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "netplugin/flow/tuning.h"

namespace r2cc::net {
namespace {

constexpr size_t kCongestionControlBytes = 17;  // TCP_CA_NAME_MAX and an end

void Set(int fd, int level, int name, int value) { setsockopt(fd, level, name, &value, sizeof(value)); }

// Empty if it cannot be read.
std::string ReadSysctl(const char* path) {
  const UniqueFd fd(open(path, O_RDONLY | O_CLOEXEC));
  char text[64] = "";
  return fd && read(fd.get(), text, sizeof(text) - 1) > 0 ? text : "";
}

// What a process without privileges may ask a socket to hold, with the kernel's doubling.
uint64_t HeldMost() {
  return std::min<uint64_t>(std::strtoull(ReadSysctl("/proc/sys/net/core/wmem_max").c_str(), nullptr, 10) * 2, INT_MAX);
}

// Before the connection is made: it decides how the connection begins. What is accepted has its listener's.
void SetCongestionControl(int fd, const std::string& name) {
  if (!name.empty()) setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(), static_cast<socklen_t>(name.size()));
}

// Without the privilege the source address alone decides.
void BindToDevice(int fd, const std::string& interface) {
  if (!interface.empty()) setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, interface.c_str(), static_cast<socklen_t>(interface.size()));
}

}  // namespace

uint16_t SocketAddress::port() const {
  if (storage.ss_family == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6&>(storage).sin6_port);
  return ntohs(reinterpret_cast<const sockaddr_in&>(storage).sin_port);
}

void SocketAddress::set_port(uint16_t port) {
  if (storage.ss_family == AF_INET6)
    reinterpret_cast<sockaddr_in6&>(storage).sin6_port = htons(port);
  else
    reinterpret_cast<sockaddr_in&>(storage).sin_port = htons(port);
}

std::string SocketAddress::Text() const {
  char text[INET6_ADDRSTRLEN] = "";
  if (storage.ss_family == AF_INET6)
    inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6&>(storage).sin6_addr, text, sizeof(text));
  else if (storage.ss_family == AF_INET)
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(storage).sin_addr, text, sizeof(text));
  return text;
}

bool ParseAddress(const std::string& text, uint16_t port, SocketAddress* out) {
  *out = {};
  auto& four = reinterpret_cast<sockaddr_in&>(out->storage);
  if (inet_pton(AF_INET, text.c_str(), &four.sin_addr) == 1) {
    four.sin_family = AF_INET;
    out->length = sizeof(sockaddr_in);
  } else {
    auto& six = reinterpret_cast<sockaddr_in6&>(out->storage);
    if (inet_pton(AF_INET6, text.c_str(), &six.sin6_addr) != 1) return false;
    six.sin6_family = AF_INET6;
    out->length = sizeof(sockaddr_in6);
  }
  out->set_port(port);
  return true;
}

UniqueFd Listen(const Source& source, uint16_t* port, std::string* error) {
  SocketAddress bound = source.address;
  UniqueFd fd(socket(bound.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (fd) {
    Set(fd.get(), IPPROTO_IP, IP_FREEBIND, 1);
    SetCongestionControl(fd.get(), source.congestion_control);
    // While this process is stopped each of its peers takes a place or two: as many as the system lets it have.
    if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&bound.storage), bound.length) == 0 && listen(fd.get(), SOMAXCONN) == 0) {
      bound.length = sizeof(bound.storage);
      getsockname(fd.get(), reinterpret_cast<sockaddr*>(&bound.storage), &bound.length);
      *port = bound.port();
      return fd;
    }
  }
  *error = "cannot listen on " + source.address.Text() + ": " + std::strerror(errno);
  return UniqueFd();
}

void Prepare(int fd, SocketUse use, const std::string& interface) {
  Set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  if (use == SocketUse::kOob) {
    Set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    const auto every_s = static_cast<int>(tuning::kLookEvery / kNanosPerSecond);
    Set(fd, IPPROTO_TCP, TCP_KEEPIDLE, every_s);
    Set(fd, IPPROTO_TCP, TCP_KEEPINTVL, every_s);
    Set(fd, IPPROTO_TCP, TCP_KEEPCNT, static_cast<int>(tuning::kOobLostAfter / tuning::kLookEvery) - 1);
    Set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(tuning::kOobLostAfter / kNanosPerMs));
  }
  BindToDevice(fd, interface);
}

UniqueFd Connect(const Source& source, const SocketAddress& to, SocketUse use, int* failure) {
  UniqueFd fd(socket(to.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (fd) {
    Prepare(fd.get(), use, source.interface);
    SetCongestionControl(fd.get(), source.congestion_control);
    bool bound = true;
    if (source.address.length > 0) {
      Set(fd.get(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
      SocketAddress from = source.address;
      from.set_port(0);
      bound = bind(fd.get(), reinterpret_cast<const sockaddr*>(&from.storage), from.length) == 0;
    }
    if (bound && (connect(fd.get(), reinterpret_cast<const sockaddr*>(&to.storage), to.length) == 0 || errno == EINPROGRESS)) return fd;
  }
  *failure = errno;
  return UniqueFd();
}

void GreetNeighbour(const Source& source, const SocketAddress& to) {
  constexpr uint16_t kDiscardPort = 9;
  const UniqueFd fd(socket(to.storage.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return;
  BindToDevice(fd.get(), source.interface);
  SocketAddress from = source.address, discard = to;
  from.set_port(0);
  discard.set_port(kDiscardPort);
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&from.storage), from.length) == 0)
    sendto(fd.get(), "", 0, MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&discard.storage), discard.length);
}

UniqueFd Accept(int listener, int* failure) {
  UniqueFd fd(accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  *failure = fd ? 0 : errno;
  return fd;
}

int IncomingInterface(int fd) {
  // For a stream socket the kernel answers with the interface of the SYN.
  Set(fd, IPPROTO_IP, IP_PKTINFO, 1);
  alignas(cmsghdr) char memory[CMSG_SPACE(sizeof(in_pktinfo)) * 4];
  socklen_t length = sizeof(memory);
  if (getsockopt(fd, IPPROTO_IP, IP_PKTOPTIONS, memory, &length) != 0) return 0;
  msghdr message{};
  message.msg_control = memory;
  message.msg_controllen = length;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != IPPROTO_IP || header->cmsg_type != IP_PKTINFO) continue;
    in_pktinfo info;
    std::memcpy(&info, CMSG_DATA(header), sizeof(info));
    return info.ipi_ifindex;
  }
  return 0;
}

void LimitUnsent(int fd, uint32_t bytes) { Set(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, static_cast<int>(bytes)); }

void LimitHeld(int fd, uint64_t bytes) {
  static const uint64_t most_bytes = HeldMost();
  constexpr int kAsTheKernelSeesFit = 0;
  int locks = 0;
  socklen_t length = sizeof(locks);
  // Linux before 5.14 knows no way back from a limit.
  if (getsockopt(fd, SOL_SOCKET, SO_BUF_LOCK, &locks, &length) != 0) return;
  if (bytes > 0 && bytes <= most_bytes)
    Set(fd, SOL_SOCKET, SO_SNDBUF, static_cast<int>(bytes / 2));  // the kernel doubles it
  else if (locks != 0)
    Set(fd, SOL_SOCKET, SO_BUF_LOCK, kAsTheKernelSeesFit);
}

void DelayAcknowledgements(int fd, bool delay) { Set(fd, IPPROTO_TCP, TCP_QUICKACK, delay ? 0 : 1); }

std::optional<std::pair<uint16_t, uint16_t>> LocalPorts() {
  const std::string text = ReadSysctl("/proc/sys/net/ipv4/ip_local_port_range");
  std::pair<uint16_t, uint16_t> range;
  if (std::sscanf(text.c_str(), "%hu %hu", &range.first, &range.second) != 2) return std::nullopt;
  return range;
}

std::string SystemCongestionControl() {
  const UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  char name[kCongestionControlBytes] = "";
  socklen_t length = sizeof(name) - 1;
  return fd && getsockopt(fd.get(), IPPROTO_TCP, TCP_CONGESTION, name, &length) == 0 ? name : "";
}

bool HasCongestionControl(const std::string& name) {
  const UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return fd && setsockopt(fd.get(), IPPROTO_TCP, TCP_CONGESTION, name.data(), static_cast<socklen_t>(name.size())) == 0;
}

int ConnectResult(int fd) {
  int error = 0;
  socklen_t length = sizeof(error);
  return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0 ? error : errno;
}

}  // namespace r2cc::net
