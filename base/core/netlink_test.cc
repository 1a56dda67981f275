#include "base/core/netlink.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/if.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <thread>

#include "base/core/fork_guard.h"
#include "base/core/netlink_datagram.h"

namespace r2cc {
namespace {

constexpr unsigned kAllUp = IFF_UP | IFF_RUNNING | IFF_LOWER_UP;

NetlinkBatch Parse(NetlinkDatagram& datagram, bool sound = true, uint32_t sequence = 1) {
  NetlinkBatch batch;
  EXPECT_EQ(ParseNetlink(datagram.bytes().data(), datagram.bytes().size(), sequence, &batch), sound);
  return batch;
}

TEST(NetlinkParser, LinkUpWithNameAndMac) {
  const uint8_t mac[6] = {2, 0, 0, 1, 2, 3};
  NetlinkDatagram datagram;
  datagram.Link(RTM_NEWLINK, 7, kAllUp).Name("eth0").Attribute(IFLA_ADDRESS, mac, 6);
  const NetlinkBatch batch = Parse(datagram);
  ASSERT_EQ(batch.events.size(), 1u);
  const NetEvent& event = batch.events[0];
  EXPECT_EQ(event.kind, NetEvent::Kind::kLink);
  EXPECT_EQ(event.ifindex, 7);
  EXPECT_EQ(event.name, "eth0");
  EXPECT_TRUE(event.admin_up);
  EXPECT_TRUE(event.carrier_up);
  EXPECT_FALSE(event.loopback);
  EXPECT_EQ(std::memcmp(event.mac.data(), mac, 6), 0);
}

TEST(NetlinkParser, OtherNamesAndKind) {
  NetlinkDatagram names, kind;
  names.Begin(0).Attribute(IFLA_ALT_IFNAME, "enp3s0", 7).Attribute(IFLA_ALT_IFNAME, "mgmt", 4);
  kind.Begin(0).Attribute(IFLA_INFO_KIND, "dummy", 6);
  NetlinkDatagram datagram;
  datagram.Link(RTM_NEWLINK, 7, 0).Name("eth0").Nested(IFLA_PROP_LIST | NLA_F_NESTED, names).Nested(IFLA_LINKINFO, kind);
  const NetlinkBatch batch = Parse(datagram);
  ASSERT_EQ(batch.events.size(), 1u);
  EXPECT_EQ(batch.events[0].other_names, (std::vector<std::string>{"enp3s0", "mgmt"}));
  EXPECT_TRUE(batch.events[0].dummy);

  NetlinkDatagram garbled;
  const uint16_t too_long[2] = {100, IFLA_ALT_IFNAME};
  garbled.Link(RTM_NEWLINK, 7, 0).Name("eth0").Attribute(IFLA_PROP_LIST, too_long, sizeof(too_long));
  EXPECT_TRUE(Parse(garbled, false).events.empty());
}

TEST(NetlinkParser, StatesOfAddresses) {
  struct Case {
    uint32_t flags;
    AddressState state;
  };
  for (const Case& c : {Case{IFA_F_PERMANENT, {}}, Case{IFA_F_TENTATIVE, {.tentative = true}}, Case{IFA_F_TENTATIVE | IFA_F_OPTIMISTIC, {}},
                        Case{IFA_F_TENTATIVE | IFA_F_DADFAILED, {.duplicate = true, .tentative = true}},
                        Case{IFA_F_DEPRECATED | IFA_F_NOPREFIXROUTE, {.deprecated = true}}}) {
    NetlinkDatagram datagram;
    datagram.Addr(RTM_NEWADDR, 7, AF_INET6).Address(IFA_ADDRESS, "fd00::1").Attribute(IFA_FLAGS, &c.flags, sizeof(c.flags));
    const NetlinkBatch batch = Parse(datagram);
    ASSERT_EQ(batch.events.size(), 1u);
    EXPECT_EQ(batch.events[0].state, c.state) << c.flags;
  }
}

TEST(NetlinkParser, EachWayOfBeingDown) {
  struct Case {
    unsigned flags;
    bool admin, carrier;
  };
  for (const Case& c : {Case{IFF_UP, true, false}, Case{IFF_UP | IFF_LOWER_UP, true, false}, Case{IFF_UP | IFF_RUNNING, true, false},
                        Case{0, false, false}, Case{kAllUp, true, true}}) {
    NetlinkDatagram datagram;
    datagram.Link(RTM_NEWLINK, 7, c.flags).Name("eth0");
    const NetlinkBatch batch = Parse(datagram);
    ASSERT_EQ(batch.events.size(), 1u);
    EXPECT_EQ(batch.events[0].admin_up, c.admin) << c.flags;
    EXPECT_EQ(batch.events[0].carrier_up, c.carrier) << c.flags;
  }
}

TEST(NetlinkParser, RemovalFromABridgeIsNoRemoval) {
  NetlinkDatagram datagram;
  datagram.Link(RTM_DELLINK, 7, kAllUp, AF_BRIDGE).Name("eth0");
  datagram.Link(RTM_DELLINK, 8, 0).Name("eth1");
  const NetlinkBatch batch = Parse(datagram);
  ASSERT_EQ(batch.events.size(), 1u);
  EXPECT_EQ(batch.events[0].kind, NetEvent::Kind::kLinkRemoved);
  EXPECT_EQ(batch.events[0].ifindex, 8);
}

TEST(NetlinkParser, Addresses) {
  NetlinkDatagram datagram;
  datagram.Addr(RTM_NEWADDR, 7).Address(IFA_ADDRESS, "10.0.0.1").Address(IFA_LOCAL, "10.0.0.1");
  datagram.Addr(RTM_NEWADDR, 8).Address(IFA_LOCAL, "10.0.0.2").Address(IFA_ADDRESS, "10.0.0.3");  // point to point
  datagram.Addr(RTM_DELADDR, 9, AF_INET6).Address(IFA_ADDRESS, "fe80::1");
  datagram.Addr(RTM_NEWADDR, 9, AF_BRIDGE).Address(IFA_ADDRESS, "10.0.0.9");  // no family of ours
  const NetlinkBatch batch = Parse(datagram);
  ASSERT_EQ(batch.events.size(), 3u);
  EXPECT_EQ(batch.events[0].kind, NetEvent::Kind::kAddressAdded);
  EXPECT_EQ(batch.events[0].address, "10.0.0.1");
  EXPECT_EQ(batch.events[1].address, "10.0.0.2");
  EXPECT_EQ(batch.events[2].kind, NetEvent::Kind::kAddressRemoved);
  EXPECT_EQ(batch.events[2].ifindex, 9);
  EXPECT_EQ(batch.events[2].address, "fe80::1");
}

TEST(NetlinkParser, EndOfDumpCountsForItsSequenceOnly) {
  NetlinkDatagram datagram;
  datagram.Begin(NLMSG_DONE, NLM_F_MULTI, 5).Add(int32_t{0});
  EXPECT_TRUE(Parse(datagram, true, 5).done);
  EXPECT_FALSE(Parse(datagram, true, 6).done);
}

TEST(NetlinkParser, RefusedAndInterruptedDumps) {
  NetlinkDatagram refused;
  refused.Begin(NLMSG_ERROR, 0, 5).Add(int32_t{-EBUSY}).Add(nlmsghdr{});
  EXPECT_TRUE(Parse(refused, true, 5).failed);
  EXPECT_EQ(Parse(refused, true, 5).error, EBUSY);
  EXPECT_FALSE(Parse(refused, true, 4).failed);
  NetlinkDatagram failed_at_end;
  failed_at_end.Begin(NLMSG_DONE, 0, 5).Add(int32_t{-EINTR});
  EXPECT_TRUE(Parse(failed_at_end, true, 5).failed);
  NetlinkDatagram odd;
  odd.Begin(NLMSG_ERROR, 0, 5).Add(int32_t{INT32_MIN});
  EXPECT_TRUE(Parse(odd, true, 5).failed);
  NetlinkDatagram interrupted;
  interrupted.Begin(NLMSG_DONE, NLM_F_MULTI | NLM_F_DUMP_INTR, 5).Add(int32_t{0});
  EXPECT_TRUE(Parse(interrupted, true, 5).interrupted);
}

TEST(NetlinkParser, OverrunAndGarbledMessagesLoseOnlyWhatFollows) {
  NetlinkDatagram datagram;
  datagram.Link(RTM_NEWLINK, 7, kAllUp).Name("eth0");
  datagram.Begin(NLMSG_OVERRUN);
  datagram.Link(RTM_NEWLINK, 8, kAllUp).Name("eth1");
  EXPECT_EQ(Parse(datagram, false).events.size(), 1u);
}

TEST(NetlinkParser, ImpossibleFieldsAreRefused) {
  const std::vector<std::function<void(NetlinkDatagram&)>> garbled = {
      [](NetlinkDatagram& d) { d.Link(RTM_NEWLINK, 0, kAllUp).Name("eth0"); },
      [](NetlinkDatagram& d) { d.Link(RTM_NEWLINK, -4, kAllUp).Name("eth0"); },
      [](NetlinkDatagram& d) { d.Begin(RTM_NEWLINK).Add(uint32_t{1}); },
      [](NetlinkDatagram& d) { d.Begin(RTM_NEWADDR).Add(uint16_t{AF_INET}); },
      [](NetlinkDatagram& d) { d.Begin(NLMSG_ERROR); },
      [](NetlinkDatagram& d) { d.Addr(RTM_NEWADDR, 7); },                                 // no address
      [](NetlinkDatagram& d) { d.Addr(RTM_NEWADDR, 7).Attribute(IFA_LOCAL, "abc", 3); },  // too short
      [](NetlinkDatagram& d) { d.Addr(RTM_NEWADDR, 0).Address(IFA_LOCAL, "10.0.0.1"); },
      [](NetlinkDatagram& d) {
        d.Link(RTM_NEWLINK, 7, kAllUp).Add(rtattr{200, IFLA_IFNAME});
      },  // beyond the message
      [](NetlinkDatagram& d) {
        d.Link(RTM_NEWLINK, 7, kAllUp).Add(rtattr{0, IFLA_IFNAME});
      },                                                                            // would never advance
      [](NetlinkDatagram& d) { d.Link(RTM_NEWLINK, 7, kAllUp).Add(uint16_t{8}); },  // half an attribute's header
      [](NetlinkDatagram& d) { d.bytes().resize(8, 0); },                           // half a header
      [](NetlinkDatagram& d) { d.bytes().resize(16, 0); },                          // length 0
  };
  for (size_t i = 0; i < garbled.size(); ++i) {
    SCOPED_TRACE(i);
    NetlinkDatagram datagram;
    garbled[i](datagram);
    EXPECT_TRUE(Parse(datagram, false).events.empty());
  }
}

TEST(NetlinkParser, UnendedNameIsCut) {
  NetlinkDatagram datagram;
  const std::string name(64, 'x');
  datagram.Link(RTM_NEWLINK, 7, kAllUp).Attribute(IFLA_IFNAME, name.data(), name.size());
  EXPECT_EQ(Parse(datagram).events.at(0).name, std::string(15, 'x'));
}

TEST(NetlinkParser, EveryTruncationIsSurvived) {
  NetlinkDatagram datagram;
  datagram.Link(RTM_NEWLINK, 7, kAllUp).Name("eth0");
  datagram.Addr(RTM_NEWADDR, 7).Address(IFA_LOCAL, "10.0.0.1");
  for (size_t size = 0; size < datagram.bytes().size(); ++size) {
    // A buffer of exactly that size on the heap, so that a sanitizer sees an overrun.
    const std::vector<uint8_t> cut(datagram.bytes().begin(), datagram.bytes().begin() + static_cast<long>(size));
    NetlinkBatch batch;
    ParseNetlink(cut.data(), cut.size(), 1, &batch);
    EXPECT_LE(batch.events.size(), 1u);
  }
}

TEST(NetlinkFuzz, MutatedDatagrams) {
  std::mt19937_64 random(5);
  size_t sound = 0;
  for (int i = 0; i < 100'000; ++i) {
    NetlinkDatagram datagram;
    datagram.Link(RTM_NEWLINK, 7, kAllUp).Name("eth0");
    datagram.Addr(RTM_NEWADDR, 7, AF_INET6).Address(IFA_ADDRESS, "fe80::1");
    datagram.Begin(NLMSG_DONE, 0, 1).Add(int32_t{0});
    std::vector<uint8_t> bytes = datagram.bytes();
    for (uint64_t flips = random() % 6; flips > 0; --flips)
      bytes[random() % bytes.size()] = static_cast<uint8_t>(random() % 3 == 0 ? random() : random() % 32);
    bytes.resize(random() % 4 == 0 ? random() % (bytes.size() + 1) : bytes.size());
    bytes.shrink_to_fit();
    NetlinkBatch batch;
    sound += ParseNetlink(bytes.data(), bytes.size(), 1, &batch);
    for (const NetEvent& event : batch.events) {
      ASSERT_GT(event.ifindex, 0);
      ASSERT_LT(event.name.size(), 16u);
    }
  }
  EXPECT_GT(sound, 1000u);
  EXPECT_LT(sound, 99'000u);
}

TEST(NetlinkFuzz, RandomBytes) {
  std::mt19937_64 random(6);
  for (int i = 0; i < 100'000; ++i) {
    std::vector<uint8_t> bytes(random() % 128);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
    NetlinkBatch batch;
    ParseNetlink(bytes.data(), bytes.size(), 1, &batch);
  }
}

// Collects events until `enough` holds; false after ten seconds.
bool ReceiveUntil(NetlinkSocket& socket, std::vector<NetEvent>* events, const std::function<bool(const std::vector<NetEvent>&)>& enough) {
  for (int i = 0; i < 1000; ++i) {
    socket.Receive(events);
    if (enough(*events)) return true;
    pollfd wait{socket.fd(), POLLIN, 0};
    poll(&wait, 1, 10);
  }
  return false;
}

std::function<bool(const std::vector<NetEvent>&)> Has(std::function<bool(const NetEvent&)> wanted) {
  return [wanted](const std::vector<NetEvent>& events) {
    for (const NetEvent& event : events)
      if (wanted(event)) return true;
    return false;
  };
}

const auto kDumped = Has([](const NetEvent& event) { return event.kind == NetEvent::Kind::kDumpDone; });

TEST(NetlinkSocket, BeginsWithWhatExists) {
  std::string error;
  auto socket = NetlinkSocket::Open(&error);
  ASSERT_NE(socket, nullptr) << error;
  std::vector<NetEvent> events;
  ASSERT_TRUE(ReceiveUntil(*socket, &events, kDumped));
  EXPECT_EQ(events.front().kind, NetEvent::Kind::kResync);
  EXPECT_TRUE(
      Has([](const NetEvent& event) { return event.kind == NetEvent::Kind::kLink && event.name == "lo" && event.loopback; })(events));
}

void Shell(const char* command) { EXPECT_EQ(std::system(command), 0) << command; }

// In a network namespace of its own, which ends with the thread.
void InOwnNamespace(const std::function<void()>& body, bool* refused) {
  std::thread([&] {
    *refused = unshare(CLONE_NEWNET) != 0;
    if (!*refused) body();
  }).join();
}

void CheckVethStory() {
  std::string error;
  auto socket = NetlinkSocket::Open(&error);
  ASSERT_NE(socket, nullptr) << error;
  std::vector<NetEvent> events;
  ASSERT_TRUE(ReceiveUntil(*socket, &events, kDumped));
  auto rail = [](bool admin, bool carrier) {
    return Has([=](const NetEvent& event) {
      return event.kind == NetEvent::Kind::kLink && event.name == "rail0" && event.admin_up == admin && event.carrier_up == carrier;
    });
  };
  events.clear();
  Shell("ip link add rail0 type veth peer name rail1 && ip addr add 10.9.0.1/24 dev rail0 && ip link set rail0 up && ip link set rail1 up");
  ASSERT_TRUE(ReceiveUntil(*socket, &events, rail(true, true)));
  EXPECT_TRUE(
      Has([](const NetEvent& event) { return event.kind == NetEvent::Kind::kAddressAdded && event.address == "10.9.0.1"; })(events));
  events.clear();
  Shell("ip link set rail1 down");  // the other end: carrier is lost
  ASSERT_TRUE(ReceiveUntil(*socket, &events, rail(true, false)));
  events.clear();
  Shell("ip link set rail1 up");
  ASSERT_TRUE(ReceiveUntil(*socket, &events, rail(true, true)));
  events.clear();
  Shell("ip link set rail0 down");
  ASSERT_TRUE(ReceiveUntil(*socket, &events, rail(false, false)));
  events.clear();
  Shell("ip addr del 10.9.0.1/24 dev rail0");
  ASSERT_TRUE(ReceiveUntil(*socket, &events, Has([](const NetEvent& event) {
    return event.kind == NetEvent::Kind::kAddressRemoved && event.address == "10.9.0.1";
  })));
  events.clear();
  Shell("ip link del rail0");
  ASSERT_TRUE(ReceiveUntil(*socket, &events,
                           Has([](const NetEvent& event) { return event.kind == NetEvent::Kind::kLinkRemoved && event.name == "rail0"; })));
}

TEST(NetlinkSocket, SeesAVethPairComeAndGo) {
  bool refused = false;
  InOwnNamespace(CheckVethStory, &refused);
  if (refused) GTEST_SKIP() << "needs root: makes a network namespace";
}

// More events than the socket's buffer holds: the reader learns that it missed some and then what exists.
void CheckOverflow() {
  std::string error;
  auto socket = NetlinkSocket::Open(&error);
  ASSERT_NE(socket, nullptr) << error;
  std::vector<NetEvent> events;
  ASSERT_TRUE(ReceiveUntil(*socket, &events, kDumped));
  const int little = 1;
  ASSERT_EQ(setsockopt(socket->fd(), SOL_SOCKET, SO_RCVBUF, &little, sizeof(little)), 0);
  Shell("for i in 1 2 3 4 5 6 7 8; do ip link add veth$i type veth peer name peer$i; done");
  events.clear();
  ASSERT_TRUE(ReceiveUntil(*socket, &events, kDumped));
  EXPECT_TRUE(Has([](const NetEvent& event) { return event.kind == NetEvent::Kind::kResync; })(events));
  EXPECT_TRUE(Has([](const NetEvent& event) { return event.kind == NetEvent::Kind::kLink && event.name == "veth8"; })(events));
}

TEST(NetlinkSocket, OverflowMeansResync) {
  bool refused = false;
  InOwnNamespace(CheckOverflow, &refused);
  if (refused) GTEST_SKIP() << "needs root: makes a network namespace";
}

TEST(NetlinkSocket, AForkedChildDoesNotKeepIt) {
  ASSERT_TRUE(fork_guard::InstallOnce());
  std::string error;
  auto socket = NetlinkSocket::Open(&error);
  ASSERT_NE(socket, nullptr) << error;
  const pid_t pid = fork();
  if (pid == 0) _exit(fcntl(socket->fd(), F_GETFD) < 0 ? 0 : 1);
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace
}  // namespace r2cc
