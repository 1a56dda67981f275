#include "netplugin/transport/verbs/site_settings.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace r2cc::net::verbs {
namespace {

class SiteSettingsTest : public testing::Test {
 protected:
  SiteSettings Of(const std::map<std::string, std::string>& environment) {
    return SiteSettingsOf(
        [&](const char* name) {
          const auto it = environment.find(name);
          return it == environment.end() ? nullptr : it->second.c_str();
        },
        &warnings_);
  }
  std::vector<std::string> warnings_;
};

TEST_F(SiteSettingsTest, EachVariableMeansWhatItMeansToNccl) {
  const SiteSettings set = Of({{"NCCL_IB_TC", "106"},
                               {"NCCL_IB_SL", "3"},
                               {"NCCL_IB_PKEY", "2"},
                               {"NCCL_IB_GID_INDEX", "3"},
                               {"NCCL_IB_TIMEOUT", "22"},
                               {"NCCL_IB_RETRY_CNT", "7"},
                               {"NCCL_IB_ADAPTIVE_ROUTING", "1"}});
  EXPECT_EQ(set.traffic_class, 106);
  EXPECT_EQ(set.service_level, 3);
  EXPECT_EQ(set.pkey_index, 2);
  EXPECT_EQ(set.gid_index, 3u);
  EXPECT_EQ(set.timeout, 22);
  EXPECT_EQ(set.retry_cnt, 7);
  EXPECT_TRUE(set.adaptive_routing);
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(SiteSettingsTest, UnsetIsOurs) {
  const SiteSettings set = Of({{"NCCL_IB_GID_INDEX", "-1"}, {"NCCL_IB_ADAPTIVE_ROUTING", "-2"}, {"NCCL_IB_TC", ""}, {"NCCL_IB_SL", "-1"}});
  EXPECT_FALSE(set.traffic_class.has_value());
  EXPECT_FALSE(set.service_level.has_value());
  EXPECT_FALSE(set.gid_index.has_value());
  EXPECT_EQ(set.timeout, 15);
  EXPECT_EQ(set.retry_cnt, 6);
  EXPECT_FALSE(set.adaptive_routing);
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(SiteSettingsTest, AnInvalidNumberIsLoggedAndLeftOut) {
  const SiteSettings set = Of({{"NCCL_IB_TC", "256"}, {"NCCL_IB_TIMEOUT", "5s"}});
  EXPECT_FALSE(set.traffic_class.has_value());
  EXPECT_EQ(set.timeout, 15);
  EXPECT_EQ(warnings_, (std::vector<std::string>{"R2CC: NCCL_IB_TC=256 is ignored: want a number from 0 to 255",
                                                 "R2CC: NCCL_IB_TIMEOUT=5s is ignored: want a number from 0 to 31"}));
}

}  // namespace
}  // namespace r2cc::net::verbs
