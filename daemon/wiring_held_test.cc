// The operations that waited for a rail that a job lost, as an event.
#include <gtest/gtest.h>

#include "daemon/wiring_rig.h"

namespace r2cc::daemon {
namespace {

// Two processes lose a rail by one fault, and each names what waited.
TEST_F(WiringTest, AnOperationThatWaitedIsOneEventOfTheFault) {
  core_.Advance(60 * kNanosPerSecond);
  for (const JobId id : {1, 2}) jobs_->Attach(id, static_cast<int32_t>(4710 + id), JobWithRails({"10.0.0.1", "10.0.1.1"}));
  const Nanos lost = core_.Now();
  core_.Advance(300 * kNanosPerMs);
  for (const JobId id : {1, 2}) {
    plan::EvidenceRecord record{};
    record.kind = static_cast<uint32_t>(plan::EvidenceRecordKind::kLinkLost);
    record.cause = static_cast<uint32_t>(plan::EvidenceCause::kSilence);
    record.time_ns = lost;
    record.local_rail = 1;
    record.received_bytes = 1;
    plan::EvidenceRecord held{};
    held.kind = static_cast<uint32_t>(plan::EvidenceRecordKind::kOperationHeld);
    held.time_ns = lost;
    held.local_rail = 1;
    held.received_bytes = 2;
    held.number = 12;
    held.duration_ns = id * 100 * static_cast<uint64_t>(kNanosPerMs);
    held.replayed_bytes = plan::HeldRank(static_cast<int32_t>(id), 8);
    plan::SetText("tp0", held.peer_node);
    plan::SetText("AllReduce", held.peer_nic);
    jobs_->Deliver(id, {record, held});
  }
  Settle();
  EXPECT_EQ(Count("operation-held"), 0);
  core_.Advance(3 * kNanosPerSecond);
  EXPECT_EQ(Count("operation-held"), 1);
  const v1::Event event = Newest("operation-held");
  EXPECT_EQ(
      event.message(),
      "train (pid 4712): the loss of rail1 held up AllReduce 12 of communicator tp0 (rank 2 of 8) for 200.0 ms; reports of this node: 2");
  EXPECT_EQ(event.nic(), "rail1");
  EXPECT_EQ(event.pid(), 4712);
  EXPECT_EQ(event.duration_ns(), 200 * kNanosPerMs);
}

}  // namespace
}  // namespace r2cc::daemon
