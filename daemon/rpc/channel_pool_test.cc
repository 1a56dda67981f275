#include "daemon/rpc/channel_pool.h"

#include <gtest/gtest.h>

namespace r2cc::daemon {
namespace {

std::shared_ptr<grpc::Channel> Made() { return grpc::CreateChannel("127.0.0.1:1", grpc::InsecureChannelCredentials()); }

TEST(ChannelPoolTest, AWayHasOneChannelWhileSomebodyHoldsIt) {
  ChannelPool pool;
  int made = 0;
  const auto make = [&] {
    ++made;
    return Made();
  };
  auto one = pool.Get("clear n1 127.0.0.1:1", make);
  auto same = pool.Get("clear n1 127.0.0.1:1", make);
  const auto other = pool.Get("tls n1 127.0.0.1:1", make);
  EXPECT_EQ(one, same);
  EXPECT_NE(one, other);
  EXPECT_EQ(made, 2);
  EXPECT_EQ(pool.open(), 2u);
  one.reset();
  EXPECT_EQ(pool.open(), 2u);
  same.reset();
  EXPECT_EQ(pool.open(), 1u);
  EXPECT_NE(pool.Get("clear n1 127.0.0.1:1", make), nullptr);
  EXPECT_EQ(made, 3);
}

}  // namespace
}  // namespace r2cc::daemon
