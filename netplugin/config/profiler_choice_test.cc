#include "netplugin/config/profiler_choice.h"

#include <gtest/gtest.h>

namespace r2cc::net {
namespace {

TEST(SeveralProfilersTest, OneOrNoneOrSomebodyElsesIsNoNews) {
  for (const char* const value :
       {static_cast<const char*>(nullptr), "", "r2cc", "none", "/opt/lib/libnccl-profiler-r2cc.so", "inspector,example"})
    EXPECT_EQ(SeveralProfilers(value), "") << (value == nullptr ? "not set" : value);
}

TEST(SeveralProfilersTest, WithSeveralProfilersTheLineHasAdvice) {
  EXPECT_EQ(
      SeveralProfilers("inspector,r2cc"),
      "NCCL_PROFILER_PLUGIN=inspector,r2cc names several profilers and NCCL loads at most one: this job may have none; name one of them");
  EXPECT_NE(SeveralProfilers("/a/libnccl-profiler-r2cc.so,/b/c.so"), "");
}

}  // namespace
}  // namespace r2cc::net
