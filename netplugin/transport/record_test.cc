#include "netplugin/transport/record.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "netplugin/transport/fake_peer.h"
#include "plan/page/gave_up.h"

namespace r2cc::net {
namespace {

struct RecordGaveUpTest : testing::Test {
  RecordGaveUpTest() {
    host.report = [this](const plan::EvidenceRecord& record) { records.push_back(record); };
    host.rails.resize(32);
  }
  FakeClock clock;
  FakeHost host{&clock};
  std::vector<plan::EvidenceRecord> records;
};

TEST_F(RecordGaveUpTest, WithoutFatesTheRecordIsOfNoRail) {
  RecordGaveUp(&host, "n1", {}, {}, {}, kNanosPerSecond);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].bytes, plan::kNoRail);
}

TEST_F(RecordGaveUpTest, EachFateIsARecordOfItsRail) {
  const std::vector<LinkFate> fates = {{0, 1, plan::EvidenceCause::kSilence, 1}, {31, 0, plan::EvidenceCause::kLinkDown, 1}};
  RecordGaveUp(&host, "n1", {}, {}, fates, kNanosPerSecond);
  ASSERT_EQ(records.size(), 2u);
  for (size_t i = 0; i < records.size(); ++i) {
    EXPECT_EQ(records[i].local_rail, fates[i].local_rail);
    EXPECT_NE(records[i].bytes, plan::kNoRail);
  }
}

struct RecordPassedTest : RecordGaveUpTest {
  RecordPassedTest() {
    host.log = [](LogLevel, const std::string&) {};
  }
  // The stall of a link of rail 2 that was lost at 1,000 and stalled from 900 to 1,400.
  void Pass(uint64_t communicator) {
    SessionAction action{.kind = SessionAction::Kind::kLinkPassed};
    action.report = {.duration = 500, .since = 1000, .until = 1400};
    RecordPassed(&host, action, {2, "n1", "rail2"}, communicator);
  }
};

TEST_F(RecordPassedTest, TheOperationsThatWaitedFollow) {
  host.held_operations = [](uint64_t communicator, Nanos begun, Nanos ended, std::span<abi::HeldOperationV1> held) -> size_t {
    EXPECT_EQ(communicator, 7u);
    EXPECT_EQ(begun, 900);
    EXPECT_EQ(ended, 1400);
    held[0] = {7, 480, 3, 8, 12, 0, "AllReduce", "tp0"};
    held[1] = {7, 260, 3, 8, 0, 0, "Send to 3", ""};
    return 2;
  };
  Pass(7);
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[0].kind, static_cast<uint32_t>(plan::EvidenceRecordKind::kLinkPassed));
  EXPECT_EQ(records[1].kind, static_cast<uint32_t>(plan::EvidenceRecordKind::kOperationHeld));
  EXPECT_EQ(records[1].time_ns, 1000) << "of the loss, as that is what names the fault";
  EXPECT_EQ(records[1].local_rail, 2u);
  EXPECT_EQ(plan::HeldText(records[1]), "AllReduce 12 of communicator tp0 (rank 3 of 8) for 0.0 ms");
  EXPECT_EQ(records[1].duration_ns, 480u);
  EXPECT_EQ(plan::HeldText(records[2]), "Send to 3 of communicator 7 (rank 3 of 8) for 0.0 ms");
}

TEST_F(RecordPassedTest, WithoutAProfilerOrAStallThereAreNone) {
  Pass(7);
  host.held_operations = [](uint64_t, Nanos, Nanos, std::span<abi::HeldOperationV1>) -> size_t { return SIZE_MAX; };
  SessionAction action{.kind = SessionAction::Kind::kLinkPassed};
  RecordPassed(&host, action, {2, "n1", "rail2"}, 0);
  EXPECT_EQ(records.size(), 2u);
  records.clear();
  Pass(0);
  EXPECT_EQ(records.size(), 5u) << "of one that says too many no more than there is room for";
}

// R2CC_FAIL_RAILS takes the link of its rail down.
TEST_F(RecordGaveUpTest, ARailThatTheJobAsksToLoseIsNoFault) {
  SessionAction action{.kind = SessionAction::Kind::kLinkLost};
  action.report.cause = plan::EvidenceCause::kLinkDown;
  RecordLost(&host, action, {2, "n1", "rail2"});
  host.rails[3].lost_on_purpose = true;
  RecordLost(&host, action, {3, "n1", "rail3"});
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].cause, static_cast<uint32_t>(plan::EvidenceCause::kLinkDown));
  EXPECT_EQ(records[1].cause, static_cast<uint32_t>(plan::EvidenceCause::kSimulated));
  EXPECT_EQ(host.tally.Line("train", kNanosPerSecond), "R2CC: 0 NIC faults survived, 1 not, 1 on purpose; r2ccctl job report train");
}

TEST(WayRecord, IsOneThatTheDaemonReads) {
  const plan::EvidenceRecord record = WayRecord(77, 3, 51200, 16 << 20, 2, 880);
  EXPECT_EQ(record.kind, static_cast<uint32_t>(plan::EvidenceRecordKind::kWay));
  EXPECT_TRUE(plan::IsNumbered(plan::EvidenceRecordKind::kWay));
  EXPECT_EQ(record.time_ns, 77);
  EXPECT_EQ(record.incarnation, 3u);
  EXPECT_EQ(record.bytes, 51200u);
  EXPECT_EQ(record.duration_ns, uint64_t{16} << 20);
  EXPECT_EQ(record.replayed_bytes, plan::WayDetail(2, 880));
}

}  // namespace
}  // namespace r2cc::net
