#include "tools/perf/root_address.h"

#include <gtest/gtest.h>

namespace r2cc::perf {
namespace {

TEST(ChooseListenAddress, NoLoopbackUnasked) {
  EXPECT_EQ(ChooseListenAddress("node0", {"127.0.1.1"}), std::nullopt);
  EXPECT_EQ(ChooseListenAddress("node0", {"127.0.0.1", "::1"}), std::nullopt);
  EXPECT_EQ(ChooseListenAddress("node0", {"127.0.1.1", "10.0.0.1", "fd00::1"}), 1u);
  EXPECT_EQ(ChooseListenAddress("node0", {"10.0.0.1"}), 0u);
  EXPECT_EQ(ChooseListenAddress("10.0.0.1", {"10.0.0.1"}), 0u);
  EXPECT_EQ(ChooseListenAddress("localhostess", {"127.0.1.1"}), std::nullopt);
}

TEST(ChooseListenAddress, LoopbackIsUsedOnRequest) {
  for (const char* host : {"127.0.1.1", "::1", "localhost", "localhost.localdomain", "job.localhost", "ip6-localhost"})
    EXPECT_EQ(ChooseListenAddress(host, {"127.0.0.1"}), 0u) << host;
}

}  // namespace
}  // namespace r2cc::perf
