#include "daemon/jobs/held_operations.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "daemon/jobs/job_registry.h"

namespace r2cc::daemon {
namespace {

v1::HeldOperation AllReduce(uint32_t number, int64_t held_ns, const std::string& node = "") {
  v1::HeldOperation held;
  held.set_function("AllReduce");
  held.set_number(number);
  held.set_communicator(0xff);
  held.set_communicator_name("tp0");
  held.set_rank(3);
  held.set_ranks(8);
  held.set_held_ns(held_ns);
  held.set_node(node);
  return held;
}

TEST(HeldOperationsTest, TheLongestAreKeptAndTheOthersCounted) {
  v1::Job::Fault fault;
  for (uint32_t number = 1; number <= 20; ++number) AddHeld(AllReduce(number, number), &fault);
  ASSERT_EQ(fault.held_size(), kHeldOperationsMax);
  EXPECT_EQ(fault.held(0).number(), 20u);
  EXPECT_EQ(fault.held(kHeldOperationsMax - 1).number(), 17u);
  EXPECT_EQ(fault.held_more(), 16u);
}

TEST(HeldOperationsTest, AnOperationThatIsReportedTwiceKeepsItsLongestTime) {
  v1::Job::Fault fault;
  for (const int64_t held_ns : {5, 9, 7}) AddHeld(AllReduce(1, held_ns), &fault);
  AddHeld(AllReduce(1, 8, "n2"), &fault);
  ASSERT_EQ(fault.held_size(), 2) << "the same operation on another node is another wait";
  EXPECT_EQ(fault.held(0).held_ns(), 9);
  v1::Job::Fault all;
  all.set_held_more(2);
  AddAllHeld(all, &fault);
  AddAllHeld(fault, &all);
  EXPECT_EQ(all.held_size(), 2);
  EXPECT_EQ(fault.held_more(), 2u);
}

TEST(HeldOperationsTest, TheTextOfARecordIsBoundedAndClean) {
  plan::EvidenceRecord record{};
  std::strcpy(record.peer_nic, "All\x1bReduce");
  std::memset(record.peer_node, 'x', sizeof(record.peer_node));
  record.number = UINT32_MAX;
  record.bytes = record.duration_ns = UINT64_MAX;
  record.replayed_bytes = plan::HeldRank(-1, -1);
  const v1::HeldOperation held = HeldOf(record);
  EXPECT_EQ(held.function(), "All?Reduce");
  EXPECT_EQ(held.communicator_name(), std::string(64, 'x'));
  EXPECT_LE(held.held_ns(), 366 * 24 * 3600 * kNanosPerSecond);
  EXPECT_GT(held.held_ns(), 0);
  v1::HeldOperation received = AllReduce(1, -5, std::string(1000, 'n'));
  received.set_function("<b>\n");
  EXPECT_EQ(CleanHeld(received).function(), "<b>?");
  EXPECT_EQ(CleanHeld(received).node().size(), 64u);
  EXPECT_EQ(CleanHeld(received).held_ns(), 0);
}

TEST(HeldOperationsTest, ALineForAPerson) {
  EXPECT_EQ(HeldText(AllReduce(12, 280 * kNanosPerMs)), "AllReduce 12 of communicator tp0 (rank 3 of 8) for 280.0 ms");
  v1::HeldOperation bare;
  bare.set_function("Send to 3");
  bare.set_communicator(0xff);
  EXPECT_EQ(HeldText(bare), "Send to 3 of communicator ff (rank 0) for 0.0 ms");
}

TEST(HeldOperationsTest, TheRegistryAddsThemToTheirFault) {
  JobRegistry registry;
  plan::AttachRequest request{};
  request.process_id = 0xabc;
  request.rail_count = 1;
  std::strcpy(request.rails[0].name, "eth0");
  registry.Add(1, {4711, 1000}, request, {"rail0"}, 5);
  const auto put = [&registry](const plan::EvidenceRecord& record) {
    if (!registry.Record(1, record)) return false;
    registry.Note(1, record, {record.time_ns, record.time_ns});
    return true;
  };
  plan::EvidenceRecord lost{};
  lost.kind = static_cast<uint32_t>(plan::EvidenceRecordKind::kLinkLost);
  lost.cause = static_cast<uint32_t>(plan::EvidenceCause::kSilence);
  lost.received_bytes = 1;
  lost.time_ns = 60 * kNanosPerSecond;
  std::strcpy(lost.peer_node, "n1");
  ASSERT_TRUE(put(lost));
  plan::EvidenceRecord held{};
  held.kind = static_cast<uint32_t>(plan::EvidenceRecordKind::kOperationHeld);
  held.received_bytes = 2;
  held.time_ns = lost.time_ns;
  held.number = 12;
  held.duration_ns = 270'000'000;
  held.replayed_bytes = plan::HeldRank(3, 8);
  std::strcpy(held.peer_node, "tp0");
  std::strcpy(held.peer_nic, "AllReduce");
  EXPECT_TRUE(put(held));
  EXPECT_FALSE(put(held)) << "the plugin puts it into each new ring again";
  const v1::Job job = registry.Jobs()[0];
  ASSERT_EQ(job.faults_size(), 1);
  ASSERT_EQ(job.faults(0).held_size(), 1);
  EXPECT_EQ(HeldText(job.faults(0).held(0)), "AllReduce 12 of communicator tp0 (rank 3 of 8) for 270.0 ms");
  EXPECT_EQ(job.peer_nodes_size(), 1) << "a communicator's name is no node";
  // It is kept over a restart.
  JobRegistry later;
  later.Restore(registry.ToKeep(61 * kNanosPerSecond), 62 * kNanosPerSecond);
  ASSERT_EQ(later.all_ended().size(), 1u);
  EXPECT_EQ(later.all_ended()[0].faults(0).held_size(), 1);
  // For an unknown fault, or a rail that is not there.
  held.received_bytes = 3;
  held.time_ns = 3600 * kNanosPerSecond;
  EXPECT_TRUE(put(held));
  held.received_bytes = 4;
  held.local_rail = 2;
  EXPECT_FALSE(put(held));
  EXPECT_EQ(registry.Jobs()[0].faults(0).held_size(), 1);
}

HeldEvents::Fault Report(const std::string& rail, Nanos lost, int32_t pid, int64_t held_ns) {
  return {.uid = 7, .job = "train", .rail = rail, .lost = lost, .pid = pid, .longest = AllReduce(1, held_ns)};
}

TEST(HeldEventsTest, OneFaultIsOneEventWithTheLongestWait) {
  HeldEvents events;
  events.Note(Report("rail0", 1000, 11, 5), 2000);
  events.Note(Report("rail0", 1000 + kNanosPerSecond, 12, 9), 3000);
  events.Note(Report("rail0", 900, 13, 7), 4000);
  events.Note(Report("rail1", 1000, 14, 1), 5000);
  EXPECT_TRUE(events.TakeDue(1999 + HeldEvents::kCollect).empty()) << "others may report, too";
  const auto due = events.TakeDue(4000 + HeldEvents::kCollect);
  ASSERT_EQ(due.size(), 1u);
  EXPECT_EQ(due[0].rail, "rail0");
  EXPECT_EQ(due[0].pid, 12);
  EXPECT_EQ(due[0].longest.held_ns(), 9);
  EXPECT_EQ(due[0].operations, 3u);
  EXPECT_EQ(events.TakeDue(5000 + HeldEvents::kCollect).size(), 1u);
  EXPECT_TRUE(events.TakeDue(INT64_MAX).empty());
}

TEST(HeldEventsTest, OtherUsersJobsAndTimesAreOtherFaults) {
  HeldEvents events;
  HeldEvents::Fault report = Report("rail0", 0, 1, 1);
  events.Note(report, 0);
  report.uid = 8;
  events.Note(report, 0);
  report.job = "other";
  events.Note(report, 0);
  report.lost = 60 * kNanosPerSecond;
  events.Note(report, 0);
  EXPECT_EQ(events.TakeDue(HeldEvents::kCollect).size(), 4u);
}

TEST(HeldEventsTest, AProcessThatInventsFaultsIsBounded) {
  HeldEvents events;
  for (int i = 0; i < 10'000; ++i) events.Note(Report("rail0", i * 60 * kNanosPerSecond, 1, 1), 0);
  EXPECT_EQ(events.TakeDue(HeldEvents::kCollect).size(), HeldEvents::kFaultsMax);
}

}  // namespace
}  // namespace r2cc::daemon
