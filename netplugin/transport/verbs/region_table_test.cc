#include "netplugin/transport/verbs/region_table.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <vector>

#include "base/core/verbs/fake_fabric.h"
#include "base/core/verbs/fake_verbs.h"
#include "base/core/verbs/faulty_verbs.h"
#include "netplugin/transport/verbs/fake_control_thread.h"

namespace r2cc::net::verbs {
namespace {

class RegionTableTest : public testing::Test {
 protected:
  RegionTableTest() : fabric_(&time_), fake_(&fabric_, 0), faulty_(&fake_) {
    fabric_.AddDevice(0, "mlx5_0");
    std::string error;
    device_ = Device::Open(&faulty_, {"mlx5_0", "mlx5_core", 1}, std::make_unique<FakeControlThread>(&time_), &error);
  }
  bool Register(net::RegionId id, uint16_t rail) {
    return table_.Register(device_, rail, {.id = id, .base = bytes_.data(), .bytes = bytes_.size()}, &key_, &error_) == 0;
  }

  FakeTimeline time_;
  FakeFabric fabric_;
  FakeVerbs fake_;
  FaultyVerbs faulty_;
  std::shared_ptr<Device> device_;
  RegionTable table_;
  std::vector<std::byte> bytes_ = std::vector<std::byte>(4096);
  uint32_t key_ = 0;
  std::string error_;
};

TEST_F(RegionTableTest, KnowsKeysByRail) {
  ASSERT_TRUE(Register(5, 1)) << error_;
  EXPECT_TRUE(table_.LocalKey(5, 1).has_value());
  EXPECT_FALSE(table_.LocalKey(5, 0).has_value());
  EXPECT_FALSE(table_.LocalKey(6, 1).has_value());
  const uint32_t first = key_;
  ASSERT_TRUE(Register(5, 1));
  EXPECT_NE(key_, first);
  EXPECT_EQ(table_.size(), 1u);
  table_.Unregister({.id = 5}, 1);
  EXPECT_FALSE(table_.LocalKey(5, 1).has_value());
  EXPECT_EQ(fake_.Close(device_->context()), 0);  // nothing is registered there any more
}

TEST_F(RegionTableTest, SaysTheLimitOfLockedMemory) {
  faulty_.FailCall(Call::kRegister, 1, ENOMEM);
  EXPECT_FALSE(Register(5, 1));
  EXPECT_NE(error_.find("ulimit -l"), std::string::npos) << error_;
  EXPECT_EQ(error_.find('\n'), std::string::npos);
}

TEST_F(RegionTableTest, RevokesWhatOneRailReachesAndNothingElse) {
  ASSERT_TRUE(Register(5, 1) && Register(6, 1) && Register(5, 2));
  EXPECT_EQ(table_.RevokeAll(1), 0);
  EXPECT_FALSE(table_.LocalKey(5, 1) || table_.LocalKey(6, 1));
  EXPECT_TRUE(table_.LocalKey(5, 2).has_value());
  EXPECT_EQ(table_.size(), 1u);
}

TEST_F(RegionTableTest, WhatTheDeviceKeepsIsNotRevoked) {
  bool fails = true;
  ASSERT_TRUE(Register(5, 1) && Register(6, 1));
  faulty_.FailWhile(Call::kDeregister, &fails, EINVAL);
  EXPECT_NE(table_.RevokeAll(1), 0);
  // Not even when it was unregistered meanwhile.
  table_.Unregister({.id = 5}, 1);
  table_.Unregister({.id = 6}, 1);
  EXPECT_EQ(table_.size(), 0u);
  EXPECT_NE(table_.RevokeAll(1), 0);
  EXPECT_EQ(table_.RevokeAll(2), 0);
  fails = false;
  EXPECT_EQ(table_.RevokeAll(1), 0);
  EXPECT_GT(faulty_.injected(), 3u);
}

TEST_F(RegionTableTest, ADeviceThatIsGoneReachesNothing) {
  ASSERT_TRUE(Register(5, 1));
  fabric_.LoseDevice(0, "mlx5_0");
  EXPECT_EQ(table_.RevokeAll(1), 0);
  EXPECT_TRUE(device_->gone());
  EXPECT_FALSE(table_.LocalKey(5, 1).has_value());
}

}  // namespace
}  // namespace r2cc::net::verbs
