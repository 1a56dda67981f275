#include "netplugin/transport/tcp/socket.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <fstream>
#include <string>

namespace r2cc::net {
namespace {

int Option(int fd, int name) {
  int value = -1;
  socklen_t length = sizeof(value);
  return getsockopt(fd, SOL_SOCKET, name, &value, &length) == 0 ? value : -1;
}

TEST(LimitHeld, HoldsUntilItIsTakenBack) {
  const UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_TRUE(fd);
  if (Option(fd.get(), SO_BUF_LOCK) < 0) GTEST_SKIP() << "needs Linux 5.14: SO_BUF_LOCK";
  LimitHeld(fd.get(), 300'000);
  EXPECT_EQ(Option(fd.get(), SO_SNDBUF), 300'000);
  EXPECT_NE(Option(fd.get(), SO_BUF_LOCK), 0);
  LimitHeld(fd.get(), 0);
  EXPECT_EQ(Option(fd.get(), SO_BUF_LOCK), 0);
}

TEST(LimitHeld, MoreThanTheSystemGrantsIsNoLimit) {
  const UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_TRUE(fd);
  uint64_t most_bytes = 0;
  std::ifstream("/proc/sys/net/core/wmem_max") >> most_bytes;
  ASSERT_GT(most_bytes, 0u);
  const int before_bytes = Option(fd.get(), SO_SNDBUF);
  LimitHeld(fd.get(), most_bytes * 2 + 1);
  EXPECT_EQ(Option(fd.get(), SO_SNDBUF), before_bytes);
}

std::string CongestionControl(const UniqueFd& fd) {
  char name[17] = "";
  socklen_t length = sizeof(name) - 1;
  return getsockopt(fd.get(), IPPROTO_TCP, TCP_CONGESTION, name, &length) == 0 ? name : "";
}

TEST(CongestionControl, BothEndsHaveWhatTheirSourcesAskFor) {
  // Every kernel has this one and gives it to anybody.
  Source source{.congestion_control = "reno"};
  ASSERT_TRUE(ParseAddress("127.0.0.1", 0, &source.address));
  uint16_t port = 0;
  std::string error;
  const UniqueFd listener = Listen(source, &port, &error);
  ASSERT_TRUE(listener) << error;
  SocketAddress to = source.address;
  to.set_port(port);
  int failure = 0;
  const UniqueFd caller = Connect(source, to, SocketUse::kBulk, &failure);
  ASSERT_TRUE(caller);
  pollfd ready{listener.get(), POLLIN, 0};
  ASSERT_EQ(poll(&ready, 1, 10'000), 1);
  const UniqueFd called = Accept(listener.get(), &failure);
  ASSERT_TRUE(called);
  EXPECT_EQ(CongestionControl(caller), "reno");
  EXPECT_EQ(CongestionControl(called), "reno");
}

TEST(CongestionControl, IsTheSystemsWhereNobodyAsks) {
  std::string system;
  std::ifstream("/proc/sys/net/ipv4/tcp_congestion_control") >> system;
  ASSERT_FALSE(system.empty());
  EXPECT_EQ(SystemCongestionControl(), system);
  EXPECT_TRUE(HasCongestionControl("reno"));
  EXPECT_FALSE(HasCongestionControl("nobody"));
}

}  // namespace
}  // namespace r2cc::net
