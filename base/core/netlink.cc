#include "base/core/netlink.h"

#include <arpa/inet.h>
#include <linux/if.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/core/fork_guard.h"

namespace r2cc {
namespace {

// Datagrams of one Receive: enough for a burst, little enough that the caller's other duties are not late.
constexpr int kDatagramsPerCall = 64;
// The kernel makes dump datagrams as large as the reader's buffer, up to this.
constexpr size_t kBufferBytes = 32 * 1024;
// Room for a storm of events (default 208 KiB, about 150 of them); an overflow is survived, by a resync.
constexpr int kReceiveBufferBytes = 1 << 20;

struct Bytes {
  const uint8_t* data;
  size_t size;
};

template <typename T>
bool Read(Bytes bytes, T* value) {
  if (bytes.size < sizeof(T)) return false;
  std::memcpy(value, bytes.data, sizeof(T));
  return true;
}

constexpr size_t Aligned(size_t bytes) { return (bytes + 3) & ~size_t{3}; }

Bytes Skip(Bytes bytes, size_t by) {
  return by >= bytes.size ? Bytes{bytes.data + bytes.size, 0} : Bytes{bytes.data + by, bytes.size - by};
}

// Calls `visit(type, payload)` for each attribute; false if one does not fit.
template <typename Visit>
bool ForEachAttribute(Bytes rest, Visit visit) {
  while (rest.size > 0) {
    rtattr header;
    if (!Read(rest, &header) || header.rta_len < sizeof(header) || header.rta_len > rest.size) return false;
    visit(static_cast<uint16_t>(header.rta_type & NLA_TYPE_MASK), Bytes{rest.data + sizeof(header), header.rta_len - sizeof(header)});
    rest = Skip(rest, Aligned(header.rta_len));
  }
  return true;
}

// A name that ends with the value, if not before.
std::string Text(Bytes value) {
  const auto* text = reinterpret_cast<const char*>(value.data);
  return std::string(text, strnlen(text, value.size));
}

bool ParseLink(Bytes body, bool removed, std::vector<NetEvent>* events) {
  ifinfomsg info;
  if (!Read(body, &info)) return false;
  // Bridges announce their ports under a family of their own: "removed" then means from the bridge.
  if (info.ifi_family != AF_UNSPEC) return true;
  NetEvent event;
  event.kind = removed ? NetEvent::Kind::kLinkRemoved : NetEvent::Kind::kLink;
  event.ifindex = info.ifi_index;
  event.admin_up = (info.ifi_flags & IFF_UP) != 0;
  // LOWER_UP is the signal; RUNNING adds what is above it (dormant ports, lower devices).
  event.carrier_up = (info.ifi_flags & IFF_LOWER_UP) != 0 && (info.ifi_flags & IFF_RUNNING) != 0;
  event.loopback = (info.ifi_flags & IFF_LOOPBACK) != 0;
  bool whole = true;
  const bool sound = ForEachAttribute(Skip(body, Aligned(sizeof(info))), [&](uint16_t type, Bytes value) {
    if (type == IFLA_IFNAME) {
      const auto* text = reinterpret_cast<const char*>(value.data);
      event.name.assign(text, strnlen(text, value.size < IFNAMSIZ ? value.size : IFNAMSIZ - 1));
    } else if (type == IFLA_ADDRESS && value.size == event.mac.size()) {
      std::memcpy(event.mac.data(), value.data, event.mac.size());
    } else if (type == IFLA_PROP_LIST) {
      whole = whole && ForEachAttribute(value, [&](uint16_t property, Bytes name) {
                if (property == IFLA_ALT_IFNAME) event.other_names.push_back(Text(name));
              });
    } else if (type == IFLA_LINKINFO) {
      whole = whole && ForEachAttribute(value, [&](uint16_t about, Bytes kind) {
                if (about == IFLA_INFO_KIND) event.dummy = Text(kind) == "dummy";
              });
    } else if (type == IFLA_MTU && value.size == sizeof(event.mtu)) {
      std::memcpy(&event.mtu, value.data, sizeof(event.mtu));
    }
  });
  if (!sound || !whole || event.ifindex <= 0) return false;
  events->push_back(std::move(event));
  return true;
}

bool ParseAddress(Bytes body, bool removed, std::vector<NetEvent>* events) {
  ifaddrmsg info;
  if (!Read(body, &info)) return false;
  const size_t size = info.ifa_family == AF_INET ? 4 : info.ifa_family == AF_INET6 ? 16 : 0;
  if (size == 0) return true;
  NetEvent event;
  event.kind = removed ? NetEvent::Kind::kAddressRemoved : NetEvent::Kind::kAddressAdded;
  event.ifindex = static_cast<int>(info.ifa_index);
  event.prefix_bits = info.ifa_prefixlen;
  uint32_t flags = info.ifa_flags;  // the first eight
  bool local = false;
  const bool sound = ForEachAttribute(Skip(body, Aligned(sizeof(info))), [&](uint16_t type, Bytes value) {
    if (type == IFA_FLAGS) Read(value, &flags);
    // On a point-to-point link IFA_ADDRESS is the other end, and IFA_LOCAL ours.
    if (value.size != size || !(type == IFA_LOCAL || (type == IFA_ADDRESS && !local))) return;
    local = type == IFA_LOCAL;
    char text[INET6_ADDRSTRLEN] = "";
    event.address = inet_ntop(info.ifa_family, value.data, text, sizeof(text)) == nullptr ? "" : text;
  });
  if (!sound || event.ifindex <= 0 || event.address.empty()) return false;
  event.state.duplicate = (flags & IFA_F_DADFAILED) != 0;
  // Optimistic ones are used while the kernel looks.
  event.state.tentative = (flags & IFA_F_TENTATIVE) != 0 && (flags & IFA_F_OPTIMISTIC) == 0;
  event.state.deprecated = (flags & IFA_F_DEPRECATED) != 0;
  events->push_back(std::move(event));
  return true;
}

bool ParseMessage(const nlmsghdr& header, Bytes body, bool of_dump, NetlinkBatch* batch) {
  switch (header.nlmsg_type) {
    case RTM_NEWLINK:
    case RTM_DELLINK: return ParseLink(body, header.nlmsg_type == RTM_DELLINK, &batch->events);
    case RTM_NEWADDR:
    case RTM_DELADDR: return ParseAddress(body, header.nlmsg_type == RTM_DELADDR, &batch->events);
    case NLMSG_OVERRUN: return false;
    case NLMSG_DONE:
    case NLMSG_ERROR: {
      int32_t error = 0;
      const bool has_error = Read(body, &error);
      if (header.nlmsg_type == NLMSG_ERROR && !has_error) return false;
      if (!of_dump) return true;
      if (error < 0) {
        batch->failed = true;
        batch->error = error == INT32_MIN ? EIO : -error;
      } else if (header.nlmsg_type == NLMSG_DONE) {
        batch->done = true;
      }
      return true;
    }
    default: return true;
  }
}

}  // namespace

bool ParseNetlink(const void* data, size_t bytes, uint32_t sequence, NetlinkBatch* batch) {
  Bytes rest{static_cast<const uint8_t*>(data), bytes};
  while (rest.size > 0) {
    nlmsghdr header;
    if (!Read(rest, &header) || header.nlmsg_len < sizeof(header) || header.nlmsg_len > rest.size) return false;
    const Bytes body{rest.data + sizeof(header), header.nlmsg_len - sizeof(header)};
    const bool of_dump = header.nlmsg_seq == sequence;
    if (of_dump && (header.nlmsg_flags & NLM_F_DUMP_INTR) != 0) batch->interrupted = true;
    if (!ParseMessage(header, body, of_dump, batch)) return false;
    rest = Skip(rest, Aligned(header.nlmsg_len));
  }
  return true;
}

std::unique_ptr<NetlinkSocket> NetlinkSocket::Open(std::string* error, Follow follow) {
  const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
  if (fd < 0) {
    *error = std::string("netlink socket: ") + std::strerror(errno);
    return nullptr;
  }
  setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &kReceiveBufferBytes, sizeof(kReceiveBufferBytes));
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  // Some sandboxes let nobody into a group, and answer all the same.
  if (follow == Follow::kChanges) address.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR;
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    *error = std::string("netlink socket: cannot join the link and address groups: ") + std::strerror(errno);
    close(fd);
    return nullptr;
  }
  auto made = std::unique_ptr<NetlinkSocket>(new NetlinkSocket(fd));
  made->Request(RTM_GETLINK, Dump::kLinks);
  return made;
}

NetlinkSocket::NetlinkSocket(int fd) : fd_(fd), buffer_(kBufferBytes) { fork_guard::Add(fd_); }

NetlinkSocket::~NetlinkSocket() {
  fork_guard::Remove(fd_);
  close(fd_);
}

void NetlinkSocket::Request(uint16_t type, Dump next) {
  struct {
    nlmsghdr header;
    rtgenmsg body;
  } request{};
  request.header.nlmsg_len = sizeof(request);
  request.header.nlmsg_type = type;
  request.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  request.header.nlmsg_seq = ++sequence_;
  request.body.rtgen_family = AF_UNSPEC;
  const bool sent = send(fd_, &request, sizeof(request), MSG_DONTWAIT | MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof(request));
  dump_ = sent ? next : Dump::kWanted;
}

void NetlinkSocket::Resync(std::vector<NetEvent>* events) {
  events->push_back(NetEvent{});  // kResync
  announced_ = true;
  interrupted_ = false;
  // Refused (EBUSY) and repeated if the dump before is still under way; answers to that one no longer count.
  Request(RTM_GETLINK, Dump::kLinks);
}

void NetlinkSocket::Advance(const NetlinkBatch& batch, std::vector<NetEvent>* events) {
  interrupted_ = interrupted_ || batch.interrupted;
  if (batch.failed) {
    dump_ = Dump::kWanted;
  } else if (batch.done && interrupted_) {
    Resync(events);
  } else if (batch.done && dump_ == Dump::kLinks) {
    Request(RTM_GETADDR, Dump::kAddresses);
  } else if (batch.done && dump_ == Dump::kAddresses) {
    dump_ = Dump::kNone;
    announced_ = false;
    NetEvent done;
    done.kind = NetEvent::Kind::kDumpDone;
    events->push_back(done);
  }
}

void NetlinkSocket::Receive(std::vector<NetEvent>* events) {
  if (!announced_ && dump_ != Dump::kNone) {
    events->push_back(NetEvent{});
    announced_ = true;
  }
  bool repeated = false;
  for (int i = 0; i < kDatagramsPerCall; ++i) {
    sockaddr_nl from{};
    iovec part{buffer_.data(), buffer_.size()};
    msghdr message{};
    message.msg_name = &from;
    message.msg_namelen = sizeof(from);
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    const ssize_t bytes = recvmsg(fd_, &message, MSG_DONTWAIT);
    if (bytes < 0) {
      if (errno == EINTR) continue;
      if (errno == ENOBUFS) {
        Resync(events);
        continue;
      }
      if (dump_ != Dump::kWanted || repeated) return;
      repeated = true;
      Request(RTM_GETLINK, Dump::kLinks);
      continue;
    }
    if (from.nl_pid != 0) continue;  // only the kernel is believed
    NetlinkBatch batch;
    const bool whole = ParseNetlink(buffer_.data(), static_cast<size_t>(bytes), sequence_, &batch) && (message.msg_flags & MSG_TRUNC) == 0;
    events->insert(events->end(), batch.events.begin(), batch.events.end());
    if (whole) {
      Advance(batch, events);
    } else {
      Resync(events);
    }
  }
}

}  // namespace r2cc
