#include "health/probe/fabric_probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "base/fake_executor.h"
#include "health/io/fake_mad_fabric.h"
#include "health/io/fake_sysfs.h"

namespace r2cc::health {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr uint64_t kGuid = 0xa088c20300181000;  // of ibp24s0 in the fixture
constexpr FabricAddress kManager = {1, 0};

class FabricProbeTest : public testing::Test {
 protected:
  void Sample(const std::string& nic = "ibp24s0") {
    const auto facts = ReadSysfsPortFacts(dgx_, nic);
    ASSERT_TRUE(facts.ok()) << facts.status();
    probe_.OnFacts(nic, *facts);
  }
  // The subnet administrator's word, as it comes through the first NIC.
  void Receive(const std::string& mad, const FabricAddress& from = kManager, const std::string& port = "mlx5_0/1") {
    fabric_.handler(port).on_mad(mad, from);
  }
  void Confirm(uint16_t status = 0) {
    std::string answer = fabric_.TakeSent().back().mad;
    answer[3] = '\x81';
    answer[5] = static_cast<char>(status);
    Receive(answer);
  }
  void Subscribe() {
    Sample();
    Confirm();
    EXPECT_THAT(Reports(), testing::ElementsAre("n0/ibp24s0: the subnet manager's reports arrive at this port"));
  }
  std::vector<std::string> Reports() { return std::exchange(reports_, {}); }
  std::vector<std::string> Seen() { return std::exchange(seen_, {}); }
  static std::string Report(uint16_t trap, uint64_t guid, uint16_t lid = 0, uint8_t port = 0) {
    return EncodeReport(9, {trap, guid, lid, port});
  }

  FakeExecutor executor_;
  FakeSysfs dgx_ = FakeSysfs::Load("health/io/testdata/dgx.sysfs");
  FakeMadFabric fabric_;
  std::vector<std::string> reports_;
  std::vector<std::string> seen_;
  FabricProbe probe_{"n0",
                     &fabric_,
                     &executor_,
                     [](uint64_t guid) {
                       return guid == kGuid ? std::optional(NicKey{"n1", "ib3"}) : std::nullopt;
                     },
                     {[this](const Evidence& one) {
                        seen_.push_back(one.subject.ToString() + " " + EvidenceKindName(one.kind) + " " + std::to_string(one.value));
                      },
                      [this](const NicKey& nic, const std::string& text) { reports_.push_back(nic.ToString() + ": " + text); }}};
};

TEST_F(FabricProbeTest, SubscribesThroughEachInfinibandPortAndAgainNowAndThen) {
  Sample("ens6f0np0");
  EXPECT_THAT(fabric_.TakeSent(), IsEmpty()) << "Ethernet has no subnet manager";
  Sample();
  auto sent = fabric_.TakeSent();
  ASSERT_THAT(sent, SizeIs(1));
  EXPECT_EQ(sent[0].port, "mlx5_0/1");
  EXPECT_TRUE(sent[0].asked);
  EXPECT_EQ(sent[0].to, kManager);
  EXPECT_EQ(sent[0].mad, EncodeSubscription(1));
  Sample("ibp64s0");
  EXPECT_EQ(fabric_.TakeSent().at(0).port, "mlx5_1/1");

  Subscribe();
  Sample();
  EXPECT_THAT(fabric_.TakeSent(), IsEmpty()) << "it is subscribed";
  executor_.Advance(kResubscribeInterval);
  Sample();
  EXPECT_THAT(fabric_.TakeSent(), SizeIs(1)) << "a restarted subnet manager has forgotten us";
  EXPECT_THAT(Reports(), IsEmpty());
}

TEST_F(FabricProbeTest, AnotherManagerIsAskedAtOnce) {
  Subscribe();
  dgx_.Set("class/infiniband/mlx5_0/ports/1/sm_lid", "0x7");
  Sample();
  const auto sent = fabric_.TakeSent();
  ASSERT_THAT(sent, SizeIs(1));
  EXPECT_EQ(sent[0].to.lid, 7);
  Receive(Report(kTrapPortOutOfService, kGuid));
  EXPECT_EQ(probe_.foreign(), 1u) << "the one that was";
  Receive(Report(kTrapPortOutOfService, kGuid), {7, 0});
  EXPECT_EQ(probe_.reports(), 1u);
}

TEST_F(FabricProbeTest, APortWithoutALinkWaits) {
  dgx_.Set("class/infiniband/mlx5_0/ports/1/state", "1: DOWN");
  Sample();
  EXPECT_FALSE(fabric_.IsOpen("mlx5_0/1"));
  dgx_.Set("class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE");
  Subscribe();
  dgx_.Set("class/infiniband/mlx5_0/ports/1/state", "1: DOWN");
  Sample();
  dgx_.Set("class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE");
  Sample();
  EXPECT_THAT(fabric_.TakeSent(), SizeIs(1)) << "subscribed again after the link was gone";
}

TEST_F(FabricProbeTest, APortThatLeavesAndComesBackIsEvidenceAndAnEvent) {
  Subscribe();
  Receive(Report(kTrapPortOutOfService, kGuid));
  EXPECT_THAT(Seen(), ElementsAre("n1/ib3 fabric-gone 0"));
  EXPECT_THAT(Reports(), ElementsAre("n1/ib3: subnet manager: port out of service (trap 65, port GUID 0xa088c20300181000)"));
  const auto answers = fabric_.TakeSent();
  ASSERT_THAT(answers, SizeIs(1));
  EXPECT_FALSE(answers[0].asked);
  EXPECT_EQ(answers[0].mad, EncodeReportAnswer(Report(kTrapPortOutOfService, kGuid)));
  executor_.Advance(kNoticeInterval);
  Receive(Report(kTrapPortInService, kGuid));
  EXPECT_THAT(Seen(), ElementsAre("n1/ib3 fabric-back 0"));
}

TEST_F(FabricProbeTest, AnUnknownPortIsAnEventAlone) {
  Subscribe();
  Receive(Report(kTrapLinkState, 0, 3));
  Receive(Report(kTrapPortOutOfService, 77));
  EXPECT_THAT(Reports(), ElementsAre("/: subnet manager: link state changed (trap 128, LID 3)", HasSubstr("GUID 0x000000000000004d")));
  Receive(Report(66, kGuid));
  EXPECT_THAT(Reports(), IsEmpty()) << "a multicast group is no fault";
  EXPECT_THAT(Seen(), IsEmpty());
}

TEST_F(FabricProbeTest, ErrorsOfTheOwnPortDegrade) {
  Subscribe();
  Receive(Report(kTrapLinkIntegrity, 0, 16, 1));
  EXPECT_THAT(Seen(), ElementsAre("n0/ibp24s0 errors 1000"));
  Receive(Report(kTrapLinkIntegrity, 0, 99, 1));
  EXPECT_THAT(Seen(), IsEmpty()) << "somebody else's";
}

// Thousands of notices a second: two tellings a second, and the last of them is right.
TEST_F(FabricProbeTest, AFlappingPortIsReportedOnceASecond) {
  Subscribe();
  for (int second = 0; second < 3; ++second) {
    for (int i = 0; i < 1000; ++i) {
      Receive(Report(kTrapPortOutOfService, kGuid));
      Receive(Report(kTrapPortInService, kGuid));
    }
    executor_.Advance(kNoticeInterval);
  }
  const auto seen = Seen();
  EXPECT_LE(seen.size(), 6u);
  EXPECT_EQ(seen.front(), "n1/ib3 fabric-gone 0");
  EXPECT_EQ(seen.back(), "n1/ib3 fabric-back 0");
  EXPECT_EQ(probe_.reports(), 6000u);
  EXPECT_GE(probe_.coalesced(), 5990u);
  EXPECT_THAT(Reports().at(1), HasSubstr("the last of 1999"));
  executor_.Advance(10 * kNoticeInterval);
  EXPECT_THAT(Seen(), IsEmpty());
}

TEST_F(FabricProbeTest, TheSameThroughSeveralPortsIsReportedOnce) {
  Subscribe();
  Sample("ibp64s0");
  for (const char* port : {"mlx5_0/1", "mlx5_1/1"}) Receive(Report(kTrapPortOutOfService, kGuid), kManager, port);
  executor_.Advance(2 * kNoticeInterval);
  EXPECT_THAT(Seen(), SizeIs(1));
}

TEST_F(FabricProbeTest, ManySubjectsAreBounded) {
  Subscribe();
  for (uint64_t guid = 1; guid <= 3 * kNoticeSubjectsMax; ++guid) Receive(Report(kTrapPortOutOfService, guid));
  EXPECT_THAT(Reports(), SizeIs(kNoticeSubjectsMax));
  executor_.Advance(kNoticeInterval);
  Receive(Report(kTrapPortOutOfService, 1u << 20));
  EXPECT_THAT(Reports(), SizeIs(1));
}

TEST_F(FabricProbeTest, UnknownSendersAreCountedAndDropped) {
  Subscribe();
  Receive(Report(kTrapPortOutOfService, kGuid), {2, 0});
  Receive("rubbish");
  Receive(std::string(kMadBytes, '\xff'));
  EXPECT_EQ(probe_.foreign(), 3u);
  EXPECT_THAT(Seen(), IsEmpty());
  EXPECT_THAT(fabric_.TakeSent(), IsEmpty()) << "nobody is answered";
}

TEST_F(FabricProbeTest, TroubleAndItsEndAreReportedOnce) {
  fabric_.set_open_status(absl::NotFoundError("libibumad.so.3 cannot be loaded"));
  Sample();
  Sample();
  EXPECT_THAT(Reports(),
              ElementsAre("n0/ibp24s0: the subnet manager's reports do not arrive at this port: libibumad.so.3 cannot be loaded"));
  fabric_.set_open_status(absl::OkStatus());
  Sample();
  fabric_.handler("mlx5_0/1").on_timeout();
  EXPECT_THAT(Reports(), ElementsAre(HasSubstr("LID 1 does not answer")));
  Sample();
  Confirm(12);
  EXPECT_THAT(Reports(), ElementsAre(HasSubstr("it refuses the subscription with status 12")));
  Sample();
  Confirm();
  EXPECT_THAT(Reports(), ElementsAre("n0/ibp24s0: the subnet manager's reports arrive at this port"));
  fabric_.handler("mlx5_0/1").on_lost(absl::UnavailableError("the port cannot be read"));
  EXPECT_THAT(Reports(), ElementsAre(HasSubstr("the port cannot be read")));
  Sample();
  EXPECT_THAT(fabric_.TakeSent(), SizeIs(1)) << "opened again, subscribed again";
}

}  // namespace
}  // namespace r2cc::health
