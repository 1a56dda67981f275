#include "netplugin/transport/tcp/descriptors.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cerrno>
#include <vector>

namespace r2cc::net {
namespace {

TEST(OutOfDescriptors, NamesTheLimit) {
  EXPECT_EQ(OutOfDescriptors(EMFILE, 1024),
            "this process has all 1024 descriptors open that it may: raise its limit (ulimit -n, LimitNOFILE= of systemd, --ulimit nofile= "
            "of a container)");
  EXPECT_NE(OutOfDescriptors(ENFILE, 1024).find("fs.file-max"), std::string::npos);
  EXPECT_EQ(OutOfDescriptors(ECONNREFUSED, 1024), "");
  EXPECT_EQ(OutOfDescriptors(0, 1024), "");
}

TEST(DescriptorWatch, WarnsAndRemembers) {
  FakeClock clock;
  std::vector<std::string> logged;
  DescriptorWatch watch(&clock, [&](LogLevel level, const std::string& line) {
    EXPECT_EQ(level, LogLevel::kWarn);
    logged.push_back(line);
  });
  watch.Failed(ETIMEDOUT);
  EXPECT_TRUE(logged.empty());
  EXPECT_EQ(watch.Trouble(), "");
  watch.Failed(EMFILE);
  ASSERT_EQ(logged.size(), 1u);
  EXPECT_EQ(logged[0].find("R2CC: no connection can be made or taken: this process has all "), 0u) << logged[0];
  EXPECT_EQ(watch.Trouble(), OutOfDescriptors(EMFILE, DescriptorsMost()));
  clock.Advance(60 * kNanosPerSecond);
  EXPECT_EQ(watch.Trouble(), "") << "long ago";
}

TEST(RaiseDescriptorsMost, ToTheHardLimit) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit low = before;
  low.rlim_cur = 64;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  EXPECT_EQ(DescriptorsMost(), 64u);
  RaiseDescriptorsMost();
  EXPECT_EQ(DescriptorsMost(), before.rlim_max);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
}

}  // namespace
}  // namespace r2cc::net
