#include "netplugin/transport/rail_transports.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace r2cc::net {
namespace {

// The out-of-band one, which has every rail.
class FakeTcp final : public OobTransport {
 public:
  TransportKind kind() const override { return TransportKind::kTcp; }
  bool Listen(const Rail& rail, Endpoint* own, std::string*) override {
    *own = {static_cast<uint8_t>(rail.index)};
    return true;
  }
  bool Register(const Memory&, uint16_t, Endpoint*, std::string*) override { return true; }
  bool ListenOob(const std::string&, uint16_t*, std::string*) override { return true; }
  bool Reaches(const OobAddress&) const override { return true; }
  std::unique_ptr<OobPort> NewOobPort(const SessionKey&, const PeerState*) override { return nullptr; }
  uint64_t refused() const override { return 3; }
};

class FakeDevices final : public Transport {
 public:
  TransportKind kind() const override { return TransportKind::kVerbs; }
  bool Has(const Rail& rail) override { return has.contains(rail.index); }
  bool Listen(const Rail& rail, Endpoint* own, std::string* error) override {
    own->clear();
    *error = "R2CC: rail " + rail.name + " has no RDMA device";
    if (!Has(rail) || broken) return false;
    *own = has[rail.index];
    return true;
  }
  std::string NameOf(uint16_t rail) override { return has.contains(rail) ? "mlx5_" + std::to_string(rail) : ""; }
  bool Register(const Memory&, uint16_t, Endpoint*, std::string*) override { return true; }
  std::unique_ptr<Port> NewPort(const SessionKey&, const PeerState*) override { return nullptr; }
  uint64_t refused() const override { return 4; }
  std::string UseTrafficClass(int named) override { return named < 0 ? "" : "not class " + std::to_string(named); }

  std::map<int, Endpoint> has;
  bool broken = false;
};

class RailTransportsTest : public testing::Test {
 protected:
  void Make(TransportOption option) {
    transports_ = std::make_unique<RailTransports>(option);
    transports_->SetOob(std::make_unique<FakeTcp>());
    const auto make = [this](const TransportParts&, std::string*) {
      auto made = std::make_unique<FakeDevices>();
      devices_ = made.get();
      devices_->has = {{0, {7}}};
      return made;
    };
    ASSERT_TRUE(transports_->Make(make, {}, &error_));
  }
  // "tcp 0, verbs 7"
  std::string Listen(int rail) {
    endpoints_.clear();
    const Rail of{.name = "eth" + std::to_string(rail), .index = rail};
    if (!transports_->Listen(of, log_, &endpoints_, &error_)) return error_;
    std::string all;
    for (const RailEndpoint& endpoint : endpoints_)
      all += (all.empty() ? "" : ", ") + std::string(endpoint.transport == TransportKind::kTcp ? "tcp " : "verbs ") +
             std::to_string(endpoint.bytes.empty() ? -1 : endpoint.bytes[0]);
    return all;
  }

  std::vector<std::string> logged_;
  const LogFn log_ = [this](LogLevel level, const std::string& line) {
    if (level == LogLevel::kWarn) logged_.push_back(line);
  };
  std::string error_;
  std::vector<RailEndpoint> endpoints_;
  FakeDevices* devices_ = nullptr;
  std::unique_ptr<RailTransports> transports_;
};

TEST_F(RailTransportsTest, AutoOpensEachRailOnAllThatItHas) {
  Make(TransportOption::kAuto);
  EXPECT_EQ(Listen(0), "tcp 0, verbs 7");
  EXPECT_EQ(Listen(1), "tcp 1");
  EXPECT_TRUE(logged_.empty());
  EXPECT_EQ(transports_->on_rails().size(), 2u);
  EXPECT_EQ(transports_->refused(), 7u);
}

TEST_F(RailTransportsTest, DevicesGetTheTrafficClassAndTheirLinesAreLogged) {
  Make(TransportOption::kAuto);
  transports_->UseTrafficClass(-1, log_);
  EXPECT_TRUE(logged_.empty());
  transports_->UseTrafficClass(7, log_);
  EXPECT_EQ(logged_, std::vector<std::string>{"not class 7"});
}

TEST_F(RailTransportsTest, AutoUsesTcpWithoutTheDeviceAndLogsIt) {
  Make(TransportOption::kAuto);
  devices_->broken = true;
  EXPECT_EQ(Listen(0), "tcp 0");
  EXPECT_EQ(logged_, std::vector<std::string>{"R2CC: rail eth0 has no RDMA device; rail eth0 uses TCP"});
}

TEST_F(RailTransportsTest, APortWithoutAnInterfaceIsForItsDeviceAlone) {
  Make(TransportOption::kAuto);
  const Rail port{.name = "mlx5_0", .index = 0, .device = "mlx5_0", .port = 1};
  ASSERT_TRUE(transports_->Listen(port, log_, &endpoints_, &error_));
  ASSERT_EQ(endpoints_.size(), 1u);
  EXPECT_EQ(endpoints_[0].transport, TransportKind::kVerbs);
  devices_->broken = true;
  EXPECT_FALSE(transports_->Listen(port, log_, &endpoints_, &error_));
  EXPECT_EQ(error_, "R2CC: rail mlx5_0 has no RDMA device");
  EXPECT_TRUE(logged_.empty());
}

TEST_F(RailTransportsTest, VerbsRefusesRailsWithoutADevice) {
  Make(TransportOption::kVerbs);
  EXPECT_EQ(Listen(0), "verbs 7");
  EXPECT_EQ(Listen(1).rfind("R2CC: rail eth1 has no RDMA device, and R2CC_TRANSPORT=verbs asks for one", 0), 0u);
  // The out-of-band connection is TCP's whatever the rails are.
  EXPECT_EQ(transports_->all().size(), 2u);
  EXPECT_EQ(transports_->on_rails().size(), 1u);
}

TEST_F(RailTransportsTest, VerbsMustBeThereIfItIsAskedFor) {
  const auto none = [](const TransportParts&, std::string* error) {
    *error = "no library";
    return nullptr;
  };
  EXPECT_FALSE(RailTransports(TransportOption::kVerbs).Make(none, {.log = log_}, &error_));
  EXPECT_EQ(error_.rfind("no library, and R2CC_TRANSPORT=verbs", 0), 0u);
  error_.clear();
  RailTransports without(TransportOption::kAuto);
  EXPECT_TRUE(without.Make(none, {.log = log_}, &error_));
  without.SetOob(std::make_unique<FakeTcp>());
  EXPECT_EQ(without.on_rails().size(), 1u);
}

TEST_F(RailTransportsTest, ListensAgainOnOneAndReportsWhetherItMoved) {
  Make(TransportOption::kAuto);
  Listen(0);
  const Rail rail{.name = "eth0", .index = 0};
  EXPECT_FALSE(transports_->ListenAgain(TransportKind::kVerbs, rail, log_, &endpoints_));
  devices_->has[0] = {9};
  EXPECT_TRUE(transports_->ListenAgain(TransportKind::kVerbs, rail, log_, &endpoints_));
  EXPECT_EQ(endpoints_[1].bytes, Endpoint{9});
  // Without an address for now it stays where it was.
  devices_->has[0] = {};
  EXPECT_FALSE(transports_->ListenAgain(TransportKind::kVerbs, rail, log_, &endpoints_));
  EXPECT_EQ(endpoints_[1].bytes, Endpoint{9});
}

// An address changes while the device is being reset, as a DHCP renewal may: the sessions' transport of that rail stays.
TEST_F(RailTransportsTest, ATransportThatCannotBeHadForNowKeepsItsPlace) {
  Make(TransportOption::kAuto);
  Listen(0);
  const Rail rail{.name = "eth0", .index = 0};
  devices_->broken = true;
  EXPECT_TRUE(transports_->ListenAgain(rail, log_, &endpoints_));
  ASSERT_EQ(endpoints_.size(), 2u);
  EXPECT_EQ(endpoints_[1].transport, TransportKind::kVerbs);
  EXPECT_TRUE(endpoints_[1].bytes.empty());
  EXPECT_EQ(logged_.size(), 1u);
  devices_->broken = false;
  EXPECT_TRUE(transports_->ListenAgain(TransportKind::kVerbs, rail, log_, &endpoints_));
  EXPECT_EQ(endpoints_[1].bytes, Endpoint{7});
  // What it had no part in at the start it has none in later.
  Listen(1);
  devices_->has[1] = {8};
  EXPECT_FALSE(transports_->ListenAgain({.name = "eth1", .index = 1}, log_, &endpoints_));
  EXPECT_EQ(endpoints_.size(), 1u);
}

TEST_F(RailTransportsTest, OneLineNamesTheTransportOfEachRail) {
  Make(TransportOption::kAuto);
  const std::vector<Rail> rails = {{.name = "eth0", .index = 0, .up = true}, {.name = "eth1", .index = 1, .up = false}};
  EXPECT_EQ(transports_->Describe(rails), "R2CC: rails eth0 (RDMA, mlx5_0), eth1 (down)");
  const std::vector<Rail> port = {{.name = "mlx5_0", .index = 0, .device = "mlx5_0", .port = 1, .port_active = false, .up = true}};
  EXPECT_EQ(transports_->Describe(port), "R2CC: rails mlx5_0 (RDMA) (down)");
  EXPECT_EQ(transports_->NameOf(rails[0]), "eth0 (RDMA, mlx5_0)");
  EXPECT_EQ(transports_->NameOf(rails[1]), "eth1");
}

}  // namespace
}  // namespace r2cc::net
