#include "netplugin/transport/verbs/verbs_transport.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <vector>

#include "base/core/verbs/fake_fabric.h"
#include "base/core/verbs/fake_verbs.h"
#include "base/core/verbs/faulty_verbs.h"
#include "netplugin/transport/verbs/fake_control_thread.h"

namespace r2cc::net::verbs {
namespace {

class TimelineClock final : public Clock {
 public:
  explicit TimelineClock(FakeTimeline* time) : time_(time) {}
  Nanos Now() const override { return time_->now(); }

 private:
  FakeTimeline* const time_;
};

// Rail k is the device mlx5_k, but rail 2 has none.
class VerbsTransportTest : public testing::Test {
 protected:
  VerbsTransportTest() {
    for (const char* const name : {"mlx5_0", "mlx5_1"}) fabric_.AddDevice(0, name);
    VerbsTransport::Options options;
    options.verbs = &faulty_;
    options.clock = &clock_;
    options.random = [] { return 4u; };
    options.log = [](LogLevel, const std::string&) {};
    options.make_control = [this](const std::string&) { return std::make_unique<FakeControlThread>(&time_); };
    options.device_of = [](const Rail& rail, uint8_t*) { return rail.index < 2 ? "mlx5_" + std::to_string(rail.index) : std::string(); };
    options.keys_revoked = [this](uint16_t rail) { revoked_.push_back(rail); };
    options.rail_changed = [this](uint16_t rail) { changed_.push_back(rail); };
    transport_ = std::make_unique<VerbsTransport>(options);
  }
  bool Listen(int rail) { return transport_->Listen({.name = "eth" + std::to_string(rail), .index = rail}, &own_, &error_); }

  FakeTimeline time_;
  TimelineClock clock_{&time_};
  FakeFabric fabric_{&time_};
  FakeVerbs fake_{&fabric_, 0};
  FaultyVerbs faulty_{&fake_};
  std::vector<uint16_t> revoked_, changed_;
  std::unique_ptr<VerbsTransport> transport_;
  Endpoint own_;
  std::string error_;
};

TEST_F(VerbsTransportTest, ARailIsItsDevicesPort) {
  ASSERT_TRUE(Listen(0)) << error_;
  RailAddress address;
  EXPECT_TRUE(Decode(own_, &address));
  EXPECT_EQ(transport_->NameOf(0), "mlx5_0");
  EXPECT_EQ(transport_->NameOf(1), "");
  EXPECT_TRUE(transport_->Has({.index = 1}));
  EXPECT_FALSE(transport_->Has({.index = 2}));
  EXPECT_FALSE(Listen(2));
  EXPECT_EQ(error_, "R2CC: rail eth2 has no RDMA device");
}

TEST_F(VerbsTransportTest, WithoutAnAddressItIsThereAndNobodyReachesIt) {
  fabric_.RemoveGid({0, "mlx5_0", 1}, 1);
  EXPECT_TRUE(Listen(0)) << error_;
  EXPECT_TRUE(own_.empty());
}

TEST_F(VerbsTransportTest, TooLittleLockedMemoryIsSaidWithItsLimit) {
  faulty_.FailCall(Call::kRegister, 1, ENOMEM);
  EXPECT_FALSE(Listen(0));
  EXPECT_NE(error_.find("the RDMA device mlx5_0 registers no memory: Cannot allocate memory; the limit of locked memory (ulimit -l"),
            std::string::npos)
      << error_;
  EXPECT_NE(error_.find("set R2CC_TRANSPORT=tcp"), std::string::npos);
  EXPECT_EQ(error_.find('\n'), std::string::npos);
}

TEST_F(VerbsTransportTest, WhatAPortSaysIsOfItsRailAlone) {
  ASSERT_TRUE(Listen(0) && Listen(1)) << error_;
  fabric_.SetCarrier({0, "mlx5_1", 1}, false);
  fabric_.SetCarrier({0, "mlx5_1", 1}, true);
  transport_->Tick(time_.now());
  EXPECT_EQ(changed_, std::vector<uint16_t>{1});
}

TEST_F(VerbsTransportTest, ALostDeviceIsOpenedAgainAndItsMemoryRegisteredAnew) {
  ASSERT_TRUE(Listen(0) && Listen(1)) << error_;
  fabric_.LoseDevice(0, "mlx5_0");
  time_.RunFor(2 * kNanosPerSecond);
  transport_->Tick(time_.now());
  EXPECT_EQ(changed_, std::vector<uint16_t>{0});
  EXPECT_FALSE(Listen(0));
  fabric_.RestoreDevice(0, "mlx5_0");
  ASSERT_TRUE(Listen(0)) << error_;
  EXPECT_FALSE(own_.empty());
  time_.RunFor(kNanosPerSecond);
  EXPECT_EQ(revoked_, std::vector<uint16_t>{0});
  changed_.clear();
  transport_->Tick(time_.now());
  EXPECT_TRUE(changed_.empty());
}

}  // namespace
}  // namespace r2cc::net::verbs
