#include "netplugin/transport/tcp/astray.h"

#include <gtest/gtest.h>
#include <net/if.h>
#include <sched.h>

#include <cstdlib>
#include <thread>

namespace r2cc::net {
namespace {

int Index(const char* name) { return static_cast<int>(if_nametoindex(name)); }

TEST(IsAstray, AnotherInterfaceThatIsNoVrfOfIts) {
  EXPECT_FALSE(IsAstray(0, "lo"));
  EXPECT_FALSE(IsAstray(Index("lo"), "lo"));
  EXPECT_TRUE(IsAstray(Index("lo") + 1, "lo"));
  EXPECT_TRUE(IsAstray(Index("lo"), "nothing-is-called-so"));
}

TEST(AstrayLine, NamesTheSysctls) {
  EXPECT_EQ(AstrayLine("10.10.1.2", "rail1", "rail0"),
            "R2CC: connections to 10.10.1.2 of rail1 come in by rail0: each interface of this node answers ARP for the others' addresses. "
            "Rails are not tied to their interfaces from now on, so that all carry data, and a lost NIC may take others with it: set "
            "net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2 (and rp_filter=2 where it is 1); r2ccctl doctor");
}

}  // namespace
}  // namespace r2cc::net
