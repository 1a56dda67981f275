// Two daemons' ends of their streams to each other, over real connections: how often a view arrives.
#include <gtest/gtest.h>

#include "daemon/rpc/exchange_rig.h"

namespace r2cc::daemon {
namespace {

TEST(PeerExchange, AViewComesOnceWhereBothCallEachOther) {
  End a("a", FreePort());
  End b("b", FreePort());
  a.Call({b.spec()});
  b.Call({a.spec()});
  ASSERT_TRUE(a.by_own_stream.Await(1));
  ASSERT_TRUE(b.by_own_stream.Await(1));
  a.broadcaster().Set(View("a", 2));
  ASSERT_TRUE(b.by_peers_stream.Await(2));
  a.broadcaster().Set(View("a", 3));
  ASSERT_TRUE(b.by_peers_stream.Await(3));
  EXPECT_EQ(b.by_peers_stream.Times(2), 1);

  // The caller hangs up: the stream of the one that is called goes on, with what it has missed.
  a.Hang();
  ASSERT_TRUE(b.by_own_stream.Await(3));
  a.broadcaster().Set(View("a", 4));
  ASSERT_TRUE(b.by_own_stream.Await(4));
  EXPECT_EQ(b.by_peers_stream.Times(4), 0);
  EXPECT_EQ(b.by_own_stream.Times(2), 0);
}

TEST(PeerExchange, OneCallBringsTheViewsOfBoth) {
  End a("a", FreePort());
  End b("b", FreePort());
  a.Call({b.spec()});
  ASSERT_TRUE(b.by_peers_stream.Await(1));
  ASSERT_TRUE(a.by_own_stream.Await(1));
  a.broadcaster().Set(View("a", 2));
  b.broadcaster().Set(View("b", 5));
  EXPECT_TRUE(b.by_peers_stream.Await(2));
  EXPECT_TRUE(a.by_own_stream.Await(5));
}

}  // namespace
}  // namespace r2cc::daemon
