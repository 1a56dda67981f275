// Datagrams of NETLINK_ROUTE, made up by a test.
#ifndef R2CC_BASE_CORE_NETLINK_DATAGRAM_H_
#define R2CC_BASE_CORE_NETLINK_DATAGRAM_H_

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace r2cc {

// Writes messages as the kernel does.
class NetlinkDatagram {
 public:
  NetlinkDatagram& Begin(uint16_t type, uint16_t flags = 0, uint32_t sequence = 0) {
    Pad();
    begin_ = bytes_.size();
    nlmsghdr header{};
    header.nlmsg_type = type;
    header.nlmsg_flags = flags;
    header.nlmsg_seq = sequence;
    return Add(header).Close();
  }
  template <typename T>
  NetlinkDatagram& Add(const T& value) {
    const auto* from = reinterpret_cast<const uint8_t*>(&value);
    bytes_.insert(bytes_.end(), from, from + sizeof(value));
    return Close();
  }
  NetlinkDatagram& Attribute(uint16_t type, const void* value, size_t size) {
    Pad();
    rtattr header{static_cast<unsigned short>(sizeof(rtattr) + size), type};
    Add(header);
    const auto* from = static_cast<const uint8_t*>(value);
    bytes_.insert(bytes_.end(), from, from + size);
    return Close();
  }
  // The attributes inside the message of `nested`.
  NetlinkDatagram& Nested(uint16_t type, NetlinkDatagram& nested) {
    return Attribute(type, &nested.bytes()[sizeof(nlmsghdr)], nested.bytes().size() - sizeof(nlmsghdr));
  }
  NetlinkDatagram& Name(const std::string& name) { return Attribute(IFLA_IFNAME, name.c_str(), name.size() + 1); }
  NetlinkDatagram& Address(uint16_t type, const char* text) {
    uint8_t bytes[16];
    const bool v6 = std::strchr(text, ':') != nullptr;
    EXPECT_EQ(inet_pton(v6 ? AF_INET6 : AF_INET, text, bytes), 1);
    return Attribute(type, bytes, v6 ? 16 : 4);
  }
  NetlinkDatagram& Link(uint16_t type, int ifindex, unsigned flags, unsigned char family = AF_UNSPEC) {
    ifinfomsg info{};
    info.ifi_family = family;
    info.ifi_index = ifindex;
    info.ifi_flags = flags;
    return Begin(type).Add(info);
  }
  NetlinkDatagram& Addr(uint16_t type, int ifindex, unsigned char family = AF_INET) {
    ifaddrmsg info{};
    info.ifa_family = family;
    info.ifa_index = static_cast<unsigned>(ifindex);
    return Begin(type).Add(info);
  }
  std::vector<uint8_t>& bytes() { return bytes_; }

 private:
  void Pad() { bytes_.resize((bytes_.size() + 3) & ~size_t{3}); }
  NetlinkDatagram& Close() {
    const auto length = static_cast<uint32_t>(bytes_.size() - begin_);
    std::memcpy(&bytes_[begin_], &length, sizeof(length));
    return *this;
  }
  std::vector<uint8_t> bytes_;
  size_t begin_ = 0;
};

}  // namespace r2cc

#endif  // R2CC_BASE_CORE_NETLINK_DATAGRAM_H_
