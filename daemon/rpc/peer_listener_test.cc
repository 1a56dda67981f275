#include "daemon/rpc/peer_listener.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <future>

namespace r2cc::daemon {
namespace {

using testing::StartsWith;

// Sends the first byte of HTTP/2 on a connection to `address`, and closes it.
template <typename Address>
bool SendHello(const Address& address, int family) {
  const int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool sent = fd >= 0 && connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 && write(fd, "P", 1) == 1;
  if (fd >= 0) close(fd);
  return sent;
}

TEST(PeerListenerTest, OneSocketTakesBothFamiliesAndShowsEachPeerByItsOwn) {
  ScopedLoopThread thread("listen");
  Refusals refusals([] { return int64_t{0}; });
  std::promise<std::string> v4_peer, v6_peer;
  std::promise<std::string>* next = &v4_peer;
  const auto take = [&next](int fd, const std::string& address) {
    close(fd);
    next->set_value(address);
  };
  const auto listener = PeerListener::Start(&thread.loop(), "[::]:0", {nullptr, take}, &refusals);
  if (!listener.ok()) GTEST_SKIP() << "needs IPv6: " << listener.status();
  const auto port = htons(static_cast<uint16_t>((*listener)->port()));
  sockaddr_in v4{.sin_family = AF_INET, .sin_port = port, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
  ASSERT_TRUE(SendHello(v4, AF_INET));
  EXPECT_THAT(v4_peer.get_future().get(), StartsWith("127.0.0.1:"));
  sockaddr_in6 v6{.sin6_family = AF_INET6, .sin6_port = port, .sin6_flowinfo = 0, .sin6_addr = in6addr_loopback, .sin6_scope_id = 0};
  next = &v6_peer;
  if (!SendHello(v6, AF_INET6)) GTEST_SKIP() << "needs IPv6: no ::1 here";
  EXPECT_THAT(v6_peer.get_future().get(), StartsWith("[::1]:"));
}

}  // namespace
}  // namespace r2cc::daemon
