#include "netplugin/transport/tcp/socket.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <fstream>

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

}  // namespace
}  // namespace r2cc::net
