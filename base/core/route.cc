#include "base/core/route.h"

#include <arpa/inet.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/core/fork_guard.h"

namespace r2cc {
namespace {

constexpr size_t kAddressBytesMax = sizeof(in6_addr);

struct Request {
  nlmsghdr header;
  rtmsg route;
  uint8_t attributes[2 * RTA_SPACE(kAddressBytesMax)];
};

// The numbers of bytes of an answer; negative: none, and errno has the cause.
ssize_t Ask(const Request& request, uint8_t* answer, size_t size) {
  const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  if (fd < 0) return -1;
  fork_guard::Add(fd);
  // The kernel answers within the first call.
  ssize_t got = send(fd, &request, request.header.nlmsg_len, MSG_NOSIGNAL);
  if (got >= 0) got = recv(fd, answer, size, MSG_DONTWAIT);
  const int failure = errno;
  fork_guard::Remove(fd);
  close(fd);
  errno = failure;
  return got;
}

int Interface(const uint8_t* bytes, size_t size, int* failure) {
  nlmsghdr header;
  *failure = EBADMSG;
  if (size < sizeof(header)) return 0;
  std::memcpy(&header, bytes, sizeof(header));
  if (header.nlmsg_len < sizeof(header) || header.nlmsg_len > size) return 0;
  if (header.nlmsg_type == NLMSG_ERROR && header.nlmsg_len >= NLMSG_LENGTH(sizeof(int))) {
    int error = 0;
    std::memcpy(&error, bytes + NLMSG_HDRLEN, sizeof(error));
    *failure = -error;
    return 0;
  }
  if (header.nlmsg_type != RTM_NEWROUTE) return 0;
  for (size_t at = NLMSG_SPACE(sizeof(rtmsg)); at + sizeof(rtattr) <= header.nlmsg_len;) {
    rtattr attribute;
    std::memcpy(&attribute, bytes + at, sizeof(attribute));
    if (attribute.rta_len < sizeof(attribute) || attribute.rta_len > header.nlmsg_len - at) return 0;
    int ifindex = 0;
    if (attribute.rta_type == RTA_OIF && attribute.rta_len == RTA_LENGTH(sizeof(ifindex))) {
      std::memcpy(&ifindex, bytes + at + RTA_LENGTH(0), sizeof(ifindex));
      *failure = 0;
      return ifindex;
    }
    at += RTA_ALIGN(attribute.rta_len);
  }
  *failure = ENETUNREACH;
  return 0;
}

}  // namespace

int RouteInterface(const std::string& from, const std::string& to, int* failure) {
  uint8_t source[kAddressBytesMax], target[kAddressBytesMax];
  const int family = to.find(':') == std::string::npos ? AF_INET : AF_INET6;
  const size_t bytes = family == AF_INET ? sizeof(in_addr) : sizeof(in6_addr);
  if (inet_pton(family, from.c_str(), source) != 1 || inet_pton(family, to.c_str(), target) != 1) {
    *failure = EAFNOSUPPORT;
    return 0;
  }
  Request request{};
  request.header.nlmsg_type = RTM_GETROUTE;
  request.header.nlmsg_flags = NLM_F_REQUEST;
  request.route.rtm_family = static_cast<unsigned char>(family);
  request.route.rtm_dst_len = request.route.rtm_src_len = static_cast<unsigned char>(bytes * 8);
  size_t used = 0;
  const auto put = [&](uint16_t type, const uint8_t* value) {
    const rtattr attribute{static_cast<unsigned short>(RTA_LENGTH(bytes)), type};
    std::memcpy(request.attributes + used, &attribute, sizeof(attribute));
    std::memcpy(request.attributes + used + RTA_LENGTH(0), value, bytes);
    used += RTA_SPACE(bytes);
  };
  put(RTA_DST, target);
  put(RTA_SRC, source);
  request.header.nlmsg_len = static_cast<uint32_t>(NLMSG_LENGTH(sizeof(rtmsg)) + used);
  uint8_t answer[4096];
  const ssize_t got = Ask(request, answer, sizeof(answer));
  if (got >= 0) return Interface(answer, static_cast<size_t>(got), failure);
  *failure = errno;
  return 0;
}

}  // namespace r2cc
