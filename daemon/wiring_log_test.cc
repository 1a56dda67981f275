// The lines that the daemon logs about a fault, in the log's text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/log.h"
#include "daemon/wiring_rig.h"

namespace r2cc::daemon {
namespace {

class WiringLogTest : public WiringTest {
 protected:
  void Attach() {
    plan::AttachRequest request = JobWithRails({"10.0.1.1"});
    request.process_id = 77;
    jobs_->Attach(1, 4711, request);
  }
  // A process of train, on rail1, loses its link to n1/rail0. The plugin's ring has these records until newer ones displace them.
  void LoseLink() {
    plan::EvidenceRecord lost{};
    lost.kind = static_cast<uint32_t>(plan::EvidenceRecordKind::kLinkLost);
    lost.cause = static_cast<uint32_t>(plan::EvidenceCause::kSocketError);
    lost.time_ns = lost_;
    lost.received_bytes = 1;
    plan::SetText("n1", lost.peer_node);
    plan::SetText("rail0", lost.peer_nic);
    plan::EvidenceRecord fenced = lost;
    fenced.kind = static_cast<uint32_t>(plan::EvidenceRecordKind::kLinkFenced);
    fenced.replayed_bytes = 699136;
    fenced.duration_ns = 3'000'000;
    fenced.received_bytes = 2;
    plan::EvidenceRecord passed = lost;
    passed.kind = static_cast<uint32_t>(plan::EvidenceRecordKind::kLinkPassed);
    passed.received_bytes = 3;
    jobs_->Deliver(1, {lost, fenced, passed});
    Settle();
    Settle();
  }
  std::vector<std::string> FailoverLines() const {
    std::vector<std::string> failovers;
    for (const std::string& line : lines_)
      if (line.find("event=failover") != std::string::npos) failovers.push_back(line);
    return failovers;
  }

  std::vector<std::string> lines_;
  ScopedLogCapture capture_{[this](Severity, const std::string& line) { lines_.push_back(line); }};
  const Nanos lost_ = core_.Now();
};

TEST_F(WiringLogTest, AFailoverIsOneLineThatStatesEachFactOnce) {
  Attach();
  LoseLink();
  ASSERT_EQ(FailoverLines().size(), 1u);
  const std::string line = FailoverLines()[0];
  for (const char* fact : {"train", "4711", "n1/rail0", "its connection broke", "699136", "3.0 ms", "failover", "n0/rail1"}) {
    const size_t first = line.find(fact);
    EXPECT_NE(first, std::string::npos) << fact << ": " << line;
    EXPECT_EQ(line.find(fact, first + 1), std::string::npos) << fact << ": " << line;
  }
  // The fields of the journal have the same in programs' words.
  for (const char* field : {"nic=", "job=", "pid=", "cause=", "peer_node=", "peer_nic=", "socket-error"})
    EXPECT_EQ(line.find(field), std::string::npos) << field << ": " << line;
}

TEST_F(WiringLogTest, AFailoverIsLoggedOnceOverRestartsOfTheDaemon) {
  Attach();
  LoseLink();
  LoseLink();
  EXPECT_EQ(FailoverLines().size(), 1u) << "the same records";
  wiring_.reset();
  Settle();
  MakeDaemon(2000);
  Attach();
  LoseLink();
  EXPECT_EQ(FailoverLines().size(), 1u) << "a plugin reports to each daemon what its ring has";
}

// Some of them are in no file yet when the power goes.
TEST_F(WiringLogTest, AFollowerMissesNoEventAfterAPowerLoss) {
  Attach();
  core_.Advance(kNanosPerSecond);
  Settle();
  files_.CutPower(0, FakeFiles::Torn::kNothing);
  LoseLink();
  const uint64_t seen = wiring_->backend().events().last_sequence();
  wiring_.reset();
  Settle();
  files_.TurnPowerOn();
  MakeDaemon(2000);
  EXPECT_GT(Newest("daemon-started").sequence(), seen) << "a client that has seen those asks for later ones";
  const uint64_t last = wiring_->backend().events().last_sequence();
  wiring_.reset();
  Settle();
  MakeDaemon(3000);
  EXPECT_EQ(Newest("daemon-started").sequence(), last + 1) << "after an orderly end nothing is lacking";
}

}  // namespace
}  // namespace r2cc::daemon
