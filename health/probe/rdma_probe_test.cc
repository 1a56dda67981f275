#include "health/probe/rdma_probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/fake_executor.h"
#include "health/io/fake_rdma_watch.h"

namespace r2cc::health {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using verbs::AsyncKind;
using verbs::PortState;

class RdmaProbeTest : public testing::Test {
 protected:
  void Start() { Start(&watch_); }
  void Start(RdmaWatch* watch) {
    probe_ = std::make_unique<RdmaProbe>(
        "n0",
        std::vector<NicIdentity>{{.name = "r0", .interface = "eth0"},
                                 {.name = "r1", .interface = "eth1"},
                                 {.name = "ib0", .port_guid = 7},
                                 {.name = "lo", .address = "127.0.0.9"}},
        watch, &executor_,
        RdmaProbe::Outputs{[this](const Evidence& evidence) {
                             EXPECT_EQ(evidence.observer, "n0");
                             EXPECT_EQ(evidence.when, executor_.Now());
                             reports_.push_back(evidence.subject.nic + " " + EvidenceKindName(evidence.kind) +
                                                (evidence.value != 0 ? " " + std::to_string(evidence.value) : "") +
                                                (evidence.detail.empty() ? "" : " (" + evidence.detail + ")"));
                           },
                           [this](const std::string& nic) { reports_.push_back("look at " + nic); },
                           [this](const std::string& nic, const std::optional<RdmaPortName>& port) { ports_[nic] = port; }});
    probe_->Start();
    Facts("r0", 3);
    Facts("r1", 4);
  }
  // The sysfs probe knows its rate unless it is 0.
  void Facts(const std::string& nic, int ifindex, uint64_t rate = 10'000'000'000) {
    SysfsPortFacts facts;
    facts.ifindex = ifindex;
    facts.rate_bits_per_s = rate;
    probe_->OnFacts(nic, facts);
  }
  // A port of the device behind these interfaces.
  static RdmaPort Port(uint8_t number, PortState state, std::vector<uint32_t> interfaces, double bits_per_second = 100e9) {
    RdmaPort port;
    port.facts = {.device = "mlx5_0", .port = number, .pci = "", .interface = "", .interfaces = std::move(interfaces)};
    port.info.state = state;
    port.info.bits_per_second = bits_per_second;
    return port;
  }
  void Pass(Nanos time) { executor_.Advance(time); }
  std::vector<std::string> Reports() { return std::exchange(reports_, {}); }

  FakeExecutor executor_;
  FakeRdmaWatch watch_;
  std::vector<std::string> reports_;
  std::map<std::string, std::optional<RdmaPortName>> ports_;
  std::unique_ptr<RdmaProbe> probe_;
};

TEST_F(RdmaProbeTest, WithoutDevicesNothingIsReported) {
  Start(nullptr);
  Pass(10 * kNanosPerSecond);
  EXPECT_THAT(Reports(), IsEmpty());
}

TEST_F(RdmaProbeTest, AFaultOfThePathsOfAnActivePortIsReportedLikeThePorts) {
  Start();
  watch_.Port("rxe0", "eth0", true);
  EXPECT_EQ(ports_["r0"], (RdmaPortName{"rxe0", 1}));
  EXPECT_THAT(Reports(), ElementsAre("r0 rdma-up"));
  probe_->SetFault("r0", "no answers");
  Pass(kRdmaSettle);
  EXPECT_THAT(Reports(), ElementsAre("r0 rdma-down (no answers)"));
  probe_->SetFault("r0", "");
  Pass(kRdmaSettle);
  EXPECT_THAT(Reports(), ElementsAre("r0 rdma-up"));
  // The port's own state comes first.
  probe_->SetFault("r0", "no answers");
  watch_.Port("rxe0", "eth0", false);
  EXPECT_EQ(ports_["r0"], std::nullopt);
  Pass(kRdmaSettle);
  EXPECT_THAT(Reports(), ElementsAre("r0 rdma-down (its RDMA port rxe0/1 is down)"));
  probe_->SetFault("r9", "there is no such NIC");
}

TEST_F(RdmaProbeTest, EventsAreReportedAtOnceAndTheStateWhenItHasLasted) {
  Start();
  watch_.Port("rxe0", "eth0", true);
  EXPECT_THAT(Reports(), ElementsAre("r0 rdma-up"));
  watch_.Event("rxe0", 1, AsyncKind::kPortError);
  EXPECT_THAT(Reports(), ElementsAre("r0 rdma-event 1 (RDMA port rxe0/1: port error)", "look at r0"));
  watch_.Port("rxe0", "eth0", false);
  Pass(kRdmaSettle - 1);
  EXPECT_THAT(Reports(), IsEmpty());
  Pass(1);
  EXPECT_THAT(Reports(), ElementsAre("r0 rdma-down (its RDMA port rxe0/1 is down)"));
  watch_.Port("rxe0", "eth0", true);
  Pass(kRdmaSettle);
  EXPECT_THAT(Reports(), ElementsAre("r0 rdma-up"));
}

TEST_F(RdmaProbeTest, AChangeThatDoesNotLastIsNone) {
  Start();
  watch_.Port("rxe0", "eth0", true);
  Reports();
  for (int i = 0; i < 100; ++i) {
    watch_.Port("rxe0", "eth0", false);
    Pass(kRdmaSettle / 2);
    watch_.Port("rxe0", "eth0", true);
    Pass(kRdmaSettle / 2);
  }
  EXPECT_THAT(Reports(), IsEmpty());
}

TEST_F(RdmaProbeTest, APortThatFlapsIsReportedOnceASecond) {
  Start();
  watch_.Port("rxe0", "eth0", true);
  Reports();
  for (int i = 0; i < 1000; ++i) {
    watch_.Event("rxe0", 1, i % 2 == 0 ? AsyncKind::kPortError : AsyncKind::kPortActive);
    Pass(kNanosPerMs);
  }
  EXPECT_THAT(Reports(), ElementsAre("r0 rdma-event 1 (RDMA port rxe0/1: port error)", "look at r0",
                                     "r0 rdma-event 999 (RDMA port rxe0/1: port is active, the last of 999)", "look at r0"));
  Pass(10 * kNanosPerSecond);
  EXPECT_THAT(Reports(), IsEmpty());
}

// No cable, no address, no subnet manager: nobody has lost anything.
TEST_F(RdmaProbeTest, APortThatWasNeverActiveIsNoFault) {
  Start();
  watch_.Port("rxe0", "eth0", false);
  Pass(kNanosPerSecond);
  watch_.Ports("rxe0", {});
  Pass(kNanosPerSecond);
  EXPECT_THAT(Reports(), IsEmpty());
}

TEST_F(RdmaProbeTest, EachNicGetsReportsOfItsOwnPort) {
  Start();
  watch_.Ports("mlx5_0", {Port(1, PortState::kActive, {3}), Port(2, PortState::kActive, {4, 17})});
  EXPECT_THAT(Reports(), ElementsAre("r0 rdma-up", "r1 rdma-up"));
  watch_.Event("mlx5_0", 2, AsyncKind::kGidChange);
  EXPECT_THAT(Reports(), ElementsAre("r1 rdma-event 1 (RDMA port mlx5_0/2: its addresses (GIDs) changed)", "look at r1"));
  watch_.Event("mlx5_0", 0, AsyncKind::kDeviceFatal);
  EXPECT_THAT(Reports(), ElementsAre("r0 rdma-event 1 (RDMA port mlx5_0/1: device has died)", "look at r0"));
  watch_.Ports("mlx5_0", {});
  Pass(kNanosPerSecond);
  EXPECT_THAT(Reports(), ElementsAre("r0 rdma-down (its RDMA device mlx5_0 is gone)", "r1 rdma-down (its RDMA device mlx5_0 is gone)",
                                     "r1 rdma-event 1 (RDMA port mlx5_0/2: device has died)", "look at r1"));
}

TEST_F(RdmaProbeTest, NicsComeAndGo) {
  Start();
  watch_.Port("rxe0", "eth0", true);
  EXPECT_THAT(Reports(), ElementsAre("r0 rdma-up"));
  watch_.Port("rxe0", "eth0", false);
  probe_->Remove("r0");
  Pass(kRdmaSettle);
  EXPECT_THAT(Reports(), IsEmpty());
  probe_->Add({.name = "r0", .interface = "eth0"});
  Facts("r0", 3);
  watch_.Port("rxe0", "eth0", true);
  EXPECT_THAT(Reports(), ElementsAre("r0 rdma-up"));
}

TEST_F(RdmaProbeTest, ADeviceThatComesBackByAnotherNameIsTheNics) {
  Start();
  watch_.Port("rxe0", "eth0", true);
  watch_.Ports("rxe0", {});
  Pass(kRdmaSettle);
  Reports();
  watch_.Port("rxe7", "eth0", true);
  Pass(kRdmaSettle);
  EXPECT_THAT(Reports(), ElementsAre("r0 rdma-up"));
}

// As an InfiniBand port is that has no interface: the files name its device.
TEST_F(RdmaProbeTest, APortThatIsKnownByItsGuid) {
  Start();
  SysfsPortFacts facts;
  facts.rdma_device = "mlx5_0";
  facts.rdma_port = 2;
  facts.rate_bits_per_s = 1;
  probe_->OnFacts("ib0", facts);
  watch_.Ports("mlx5_0", {Port(1, PortState::kActive, {}), Port(2, PortState::kActive, {})});
  EXPECT_THAT(Reports(), ElementsAre("ib0 rdma-up"));
  watch_.Ports("mlx5_0", {Port(1, PortState::kActive, {}), Port(2, PortState::kInitializing, {})});
  Pass(kRdmaSettle);
  EXPECT_THAT(Reports(), ElementsAre("ib0 rdma-down (its RDMA port mlx5_0/2 is waiting for the subnet manager)"));
}

TEST_F(RdmaProbeTest, ItsRateIsTheNicsWhereTheKernelNamesNone) {
  Start();
  watch_.Ports("mlx5_0", {Port(1, PortState::kActive, {3}), Port(2, PortState::kActive, {4})});
  Facts("r0", 3, 0);
  EXPECT_THAT(Reports(), ElementsAre("r0 rdma-up", "r1 rdma-up", "r0 rate 100000000000"));
  Facts("r0", 3, 0);
  EXPECT_THAT(Reports(), IsEmpty()) << "reported once";
  watch_.Ports("mlx5_0", {Port(1, PortState::kActive, {3}, 25e9), Port(2, PortState::kActive, {4}, 25e9)});
  EXPECT_THAT(Reports(), ElementsAre("r0 rate 25000000000"));
  watch_.Ports("mlx5_0", {Port(1, PortState::kDown, {3}, 2.5e9), Port(2, PortState::kActive, {4}, 25e9)});
  EXPECT_THAT(Reports(), IsEmpty()) << "a port that is down names the lowest rate that there is";
}

}  // namespace
}  // namespace r2cc::health
