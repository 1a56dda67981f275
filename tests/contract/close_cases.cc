// Flows and links that end while a chunk is half-way: in a device that cannot stop, and in a buffer that is the job's again.
#include "tests/contract/fixture.h"

namespace r2cc::contract {
namespace {

TEST_P(Contract, FencedNeverByACloseThatCannotBeFinished) {
  // Slow enough for chunks to be on the rail when it is lost.
  Make({.deadline = kShortDeadline, .silence = 100 * kMs, .rail_bytes_per_s = 10'000'000});
  if (!world_->FailCloses(1, false)) GTEST_SKIP() << "needs the trait: a close that can fail";
  StartOn({1, 2, 3});
  ASSERT_TRUE(TrafficMore(8));
  for (const int flow : flows_)
    for (int i = 0; i < 2; ++i) job_->Exchange(flow, kLarge);
  job_->RunFor(20 * kMs);
  world_->FailCloses(1, true);
  const Nanos since = world_->Now();
  const int lost = flows_[0];
  const uint64_t received = world_->Received(lost);
  world_->Silence(1, 1);
  ASSERT_TRUE(job_->RunUntil([&] { return world_->sender(lost) == FlowState::kFailed; }, Patience())) << "waits for ever";
  EXPECT_GE(world_->Now() - since, kShortDeadline) << "an error is final: never early";
  EXPECT_LE(world_->Now() - since, kShortDeadline + 3 * kSecond);
  const std::string error = world_->SenderError(lost);
  EXPECT_NE(error.find("could not close link"), std::string::npos) << error;
  EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  EXPECT_EQ(world_->Received(lost), received) << "lost chunks were sent again";
  // The flows beside it go on. Then the device comes to its senses: what it still writes goes into buffers that are not the job's yet.
  job_->Reset(lost);
  flows_.erase(flows_.begin());
  ASSERT_TRUE(TrafficMore(8)) << "the flows beside it stand still";
  world_->FailCloses(1, false);
  world_->CloseSend(lost);
  world_->CloseReceive(lost);
  job_->Reset(lost);
  ASSERT_TRUE(TrafficFor(100 * kMs));
  ExpectAllWell();
}

// The job has its buffer back, and the link goes on for others.
TEST_P(Contract, NoLateWriteOfTheRestOfAHalfReadChunk) {
  // A chunk takes 50 ms.
  Make({.chunk_bytes = 256 * 1024, .rail_bytes_per_s = 5'000'000});
  StartOn({0, 0, 1, 2});
  for (int i = 0; i < 3; ++i) {
    const int closed = flows_.back();
    job_->Exchange(closed, 4 * kLarge);
    job_->RunFor((20 + 10 * i) * kMs);
    world_->CloseReceive(closed);
    job_->Reset(closed);
    job_->RunFor(200 * kMs);
    job_->CheckPoison();
    world_->CloseSend(closed);
    flows_.pop_back();
  }
  ExpectAllWell();
}

}  // namespace
}  // namespace r2cc::contract
