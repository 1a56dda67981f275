#include "netplugin/transport/verbs/region_table.h"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "netplugin/transport/verbs/fake_control_thread.h"
#include "netplugin/transport/verbs/fake_types.h"

namespace r2cc::net::verbs {
namespace {

class RegionTableTest : public testing::Test {
 protected:
  RegionTableTest() : fabric_(&time_), fake_(&fabric_, 0), faulty_(&fake_) {
    fabric_.AddDevice(0, "mlx5_0");
    std::string error;
    device_ = Device::Open(&faulty_, {"mlx5_0", "mlx5_core", 1}, std::make_unique<FakeControlThread>(&time_), &error);
    for (auto& domain : domains_) domain = NewDomain();
  }
  std::shared_ptr<Domain> NewDomain() {
    int failed = 0;
    return Domain::Allocate(device_, &failed);
  }
  bool Register(net::RegionId id, uint16_t rail) {
    return table_.Register(domains_[rail], rail, {.id = id, .base = bytes_.data(), .bytes = bytes_.size()}, &key_, &error_) == 0;
  }

  FakeTimeline time_;
  FakeFabric fabric_;
  FakeVerbs fake_;
  FaultyVerbs faulty_;
  std::shared_ptr<Device> device_;
  std::array<std::shared_ptr<Domain>, 3> domains_;  // by rail
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

TEST_F(RegionTableTest, TheErrorHasTheLimitOfLockedMemory) {
  faulty_.FailCall(Call::kRegister, 1, ENOMEM);
  EXPECT_FALSE(Register(5, 1));
  EXPECT_NE(error_.find("ulimit -l"), std::string::npos) << error_;
  EXPECT_EQ(error_.find('\n'), std::string::npos);
}

TEST_F(RegionTableTest, RevokesWhatOneRailReachesAndNothingElse) {
  ASSERT_TRUE(Register(5, 1) && Register(6, 1) && Register(5, 2));
  EXPECT_EQ(table_.RevokeAll(domains_[1].get()), 0);
  EXPECT_FALSE(table_.LocalKey(5, 1) || table_.LocalKey(6, 1));
  EXPECT_TRUE(table_.LocalKey(5, 2).has_value());
  EXPECT_EQ(table_.size(), 1u);
}

TEST_F(RegionTableTest, ARegionThatTheDeviceKeepsIsNotRevoked) {
  const bool fails = true;
  ASSERT_TRUE(Register(5, 1) && Register(6, 1));
  faulty_.FailWhile(Call::kDeregister, &fails, EINVAL);
  EXPECT_NE(table_.RevokeAll(domains_[1].get()), 0);
  // Not even when it was unregistered meanwhile.
  table_.Unregister({.id = 5}, 1);
  table_.Unregister({.id = 6}, 1);
  EXPECT_EQ(table_.size(), 0u);
  EXPECT_NE(table_.RevokeAll(domains_[1].get()), 0);
  EXPECT_EQ(table_.RevokeAll(domains_[2].get()), 0);
  faulty_.Mend();
  EXPECT_EQ(table_.RevokeAll(domains_[1].get()), 0);
  EXPECT_GT(faulty_.injected(), 3u);
}

TEST_F(RegionTableTest, ADeviceThatIsGoneReachesNothing) {
  ASSERT_TRUE(Register(5, 1));
  fabric_.LoseDevice(0, "mlx5_0");
  EXPECT_NE(table_.RevokeAll(domains_[1].get()), 0) << "it has not said so";
  device_->ReadEvents([](uint8_t) {});
  EXPECT_EQ(table_.RevokeAll(domains_[1].get()), 0);
  EXPECT_TRUE(device_->gone());
  EXPECT_FALSE(table_.LocalKey(5, 1).has_value());
}

// As mlx5 says of commands in a bad state, of a device that lives.
TEST_F(RegionTableTest, AnErrorCodeIsNoProofThatTheDeviceIsGone) {
  for (const int error : {EIO, ENODEV}) {
    domains_[1] = NewDomain();
    ASSERT_TRUE(Register(5, 1));
    faulty_.FailCall(Call::kDeregister, 1, error);
    EXPECT_NE(table_.RevokeAll(domains_[1].get()), 0);
    EXPECT_FALSE(device_->lost() || device_->gone());
    EXPECT_EQ(table_.RevokeAll(domains_[1].get()), 0);
  }
}

TEST_F(RegionTableTest, NothingIsRegisteredInARevokedDomain) {
  ASSERT_TRUE(Register(5, 1));
  EXPECT_EQ(table_.RevokeAll(domains_[1].get()), 0);
  EXPECT_FALSE(Register(6, 1));
  domains_[1] = NewDomain();
  EXPECT_TRUE(Register(6, 1)) << error_;
}

// What comes within a call of the device, as another thread's would.
class Meanwhile final : public FaultyVerbs {
 public:
  using FaultyVerbs::FaultyVerbs;
  int Deregister(MemoryRegionId region) override {
    ++ended[region];
    if (auto what = std::exchange(in_deregister, nullptr)) what();
    return FaultyVerbs::Deregister(region);
  }
  int Register(DomainId domain, void* base, uint64_t bytes, uint32_t access, MemoryRegion* region) override {
    const int error = FaultyVerbs::Register(domain, base, bytes, access, region);
    if (auto what = std::exchange(in_register, nullptr)) what();
    return error;
  }
  std::map<MemoryRegionId, int> ended;
  std::function<void()> in_deregister, in_register;
};

class RegionTableMeanwhile : public RegionTableTest {
 protected:
  RegionTableMeanwhile() {
    std::string error;
    device_ = Device::Open(&verbs_, {"mlx5_0", "mlx5_core", 1}, std::make_unique<FakeControlThread>(&time_), &error);
    for (auto& domain : domains_) domain = NewDomain();
  }
  // What was made by `verbs_` ends before it.
  ~RegionTableMeanwhile() override {
    for (auto& domain : domains_) domain.reset();
    device_.reset();
  }
  Meanwhile verbs_{&fake_};
};

// libibverbs frees what it deregisters.
TEST_F(RegionTableMeanwhile, ARegionEndsOnce) {
  for (net::RegionId id = 1; id <= 4; ++id) ASSERT_TRUE(Register(id, 1));
  verbs_.in_deregister = [this] {
    for (net::RegionId id = 1; id <= 4; ++id) table_.Unregister({.id = id}, 1);
  };
  EXPECT_EQ(table_.RevokeAll(domains_[1].get()), 0);
  EXPECT_EQ(verbs_.ended.size(), 4u);
  for (const auto& [region, times] : verbs_.ended) EXPECT_EQ(times, 1);
}

TEST_F(RegionTableMeanwhile, ARegionThatIsBeingRegisteredIsRevokedAsWell) {
  int revoked = 0;
  verbs_.in_register = [&] { revoked = table_.RevokeAll(domains_[1].get()); };
  EXPECT_FALSE(Register(5, 1));
  EXPECT_NE(revoked, 0);
  EXPECT_FALSE(table_.LocalKey(5, 1).has_value());
  EXPECT_EQ(table_.RevokeAll(domains_[1].get()), 0);
  EXPECT_EQ(verbs_.ended.size(), 1u);
}

}  // namespace
}  // namespace r2cc::net::verbs
