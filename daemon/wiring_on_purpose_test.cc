// Rails that a job loses on purpose are no faults that it survived.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <tuple>

#include "daemon/services/report_service.h"
#include "daemon/wiring_rig.h"

namespace r2cc::daemon {
namespace {

// A process of train loses its link from rail1 to n1/rail0, and goes on.
class WiringOnPurposeTest : public WiringTest {
 protected:
  void Attach() {
    plan::AttachRequest request = JobWithRails({"10.0.1.1"});
    jobs_->Attach(1, 4711, request);
    Settle();
  }
  void Lose(plan::EvidenceCause cause) {
    plan::EvidenceRecord lost{};
    lost.kind = static_cast<uint32_t>(plan::EvidenceRecordKind::kLinkLost);
    lost.cause = static_cast<uint32_t>(cause);
    lost.time_ns = core_.Now();
    plan::SetText("n1", lost.peer_node);
    plan::SetText("rail0", lost.peer_nic);
    plan::EvidenceRecord passed = lost;
    passed.kind = static_cast<uint32_t>(plan::EvidenceRecordKind::kLinkPassed);
    jobs_->Deliver(1, {lost, passed});
    Settle();
  }
  void PeersDrill(uint64_t counter) {
    v1::NodeView view = PeerView(counter, v1::FAILED);
    view.mutable_nics(0)->set_drill_failed(true);
    peers_->Receive("n1", view);
    Settle();
  }
  // The sums of this node: faults masked, restarts avoided, losses on purpose.
  std::tuple<uint32_t, uint32_t, uint32_t> Saved() {
    core_.Advance(ReportService::kSumsLast);
    Settle();
    const v1::Saved saved = Status().saved(1);
    return {saved.faults_masked(), saved.restarts(), saved.on_purpose()};
  }
};

TEST_F(WiringOnPurposeTest, ADrillIsNoFaultThatWasSurvived) {
  Attach();
  ASSERT_TRUE(Act("n0", "rail1", v1::FAIL).ok());
  Lose(plan::EvidenceCause::kPageNotice);
  EXPECT_EQ(Saved(), std::tuple(0u, 0u, 1u));
  std::optional<v1::ReportJobsReply> report;
  wiring_->backend().Ask(v1::ReportJobsRequest(), kRoot, [&](absl::StatusOr<v1::ReportJobsReply> reply) {
    if (reply.ok()) report = *std::move(reply);
  });
  core_.Advance(ReportService::kAnswerAfter);  // n1 does not answer
  Settle();
  ASSERT_TRUE(report.has_value());
  ASSERT_EQ(report->jobs_size(), 1);
  EXPECT_TRUE(report->jobs(0).sums().faults(0).on_purpose()) << "the report of the job lists it";
}

TEST_F(WiringOnPurposeTest, ADrainAtOnceIsNone) {
  Attach();
  ASSERT_TRUE(Act("n0", "rail1", v1::DRAIN_NOW).ok());
  Lose(plan::EvidenceCause::kPageNotice);
  EXPECT_EQ(Saved(), std::tuple(0u, 0u, 1u));
}

TEST_F(WiringOnPurposeTest, ADrillAtTheOtherEndMayBeReportedAfterTheLoss) {
  Attach();
  Lose(plan::EvidenceCause::kPeerFenced);
  core_.Advance(kNanosPerSecond / 4);
  PeersDrill(1);
  EXPECT_EQ(Saved(), std::tuple(0u, 0u, 1u));
}

TEST_F(WiringOnPurposeTest, AFaultStaysOneAfterAnOperatorActs) {
  Attach();
  Lose(plan::EvidenceCause::kPeerFenced);
  core_.Advance(3 * kNanosPerSecond);
  Settle();
  PeersDrill(1);
  EXPECT_EQ(Saved(), std::tuple(1u, 1u, 0u)) << "the drill came later";
  Lose(plan::EvidenceCause::kSilence);
  EXPECT_EQ(std::get<2>(Saved()), 0u) << "no drill is seen as a silence";
}

TEST_F(WiringOnPurposeTest, AFaultAtTheTimeOfADrillIsAFault) {
  Attach();
  Lose(plan::EvidenceCause::kSilence);
  Lose(plan::EvidenceCause::kPeerFenced);
  PeersDrill(1);
  EXPECT_EQ(Saved(), std::tuple(1u, 1u, 0u)) << "the silence came first";
}

TEST_F(WiringOnPurposeTest, AFaultJustAfterALossOnPurposeIsAFault) {
  Attach();
  Lose(plan::EvidenceCause::kSimulated);
  Lose(plan::EvidenceCause::kSilence);
  EXPECT_EQ(Saved(), std::tuple(1u, 1u, 0u));
}

TEST_F(WiringOnPurposeTest, ARailThatFailsBecauseTheJobAsksForItIsNoFault) {
  Attach();
  Lose(plan::EvidenceCause::kSimulated);
  EXPECT_EQ(Saved(), std::tuple(0u, 0u, 1u));
}

}  // namespace
}  // namespace r2cc::daemon
