#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/config/config.h"

namespace r2cc::daemon {
namespace {

using testing::HasSubstr;

absl::StatusOr<Config> Parse(const std::string& text) { return ParseConfig(text, "f", {"/run", "host", "", "/var"}); }

TEST(ConfigRdma, ProbesAreMarkedAsConfigured) {
  EXPECT_EQ(Parse("")->rdma, health::RdmaClass{});
  EXPECT_EQ(Parse("rdma { traffic_class: 106 service_level: 3 pkey_index: 2 }")->rdma, (health::RdmaClass{106, 3, 2}));
}

TEST(ConfigRdma, ImpossiblePacketSizesAreRefused) {
  EXPECT_THAT(std::string(Parse("\nrdma { traffic_class: 256 }").status().message()),
              HasSubstr("f:2: rdma: traffic_class is 0 to 255, not 256"));
  EXPECT_THAT(std::string(Parse("rdma { service_level: 16 }").status().message()), HasSubstr("service_level is 0 to 15, not 16"));
  EXPECT_THAT(std::string(Parse("rdma { pkey_index: 65536 }").status().message()), HasSubstr("pkey_index is 0 to 65535, not 65536"));
}

}  // namespace
}  // namespace r2cc::daemon
