// What holds without any fault: grants, the eager path, acknowledgements, exactly once.
#include <array>
#include <cstring>

#include "netplugin/flow/tuning.h"
#include "netplugin/transport/workload_classifier.h"
#include "tests/contract/fixture.h"

namespace r2cc::contract {
namespace {

constexpr std::array<size_t, 14> kSizes = {
    0, 1, 127, 128, 129, 4095, kEagerBytes - 1, kEagerBytes, kEagerBytes + 1, 128 * kKiB - 1, 128 * kKiB + 1, 1'000'003, 3 * kMiB, 0};

TEST_P(Contract, GrantedNothingTravelsBeforeItsBufferIsPosted) {
  Make();
  Start(1);
  const uint64_t before = Left(0);
  job_->Send(flows_[0], 4 * kMiB);
  job_->RunFor(300 * kMs);
  EXPECT_LT(Left(0) - before, 64 * kKiB) << "a message travelled that nobody had asked for";
  EXPECT_EQ(world_->Sent(flows_[0]), 1u) << "the one of the warm-up";
  job_->Receive(flows_[0], 4 * kMiB);
  ExpectAllWell();
}

TEST_P(Contract, GrantedInOrderWhicheverEndPostsFirst) {
  Make();
  Start(2);
  for (int round = 0; round < 4; ++round) {
    for (size_t i = 0; i < 8; ++i) {
      const size_t bytes = kSizes[(i + static_cast<size_t>(round) * 3) % kSizes.size()];
      // One flow's receiver is early, the other's late; buffers are larger than what comes.
      job_->Receive(flows_[0], bytes + 4096);
      job_->Send(flows_[1], bytes);
    }
    job_->RunFor(20 * kMs);
    for (size_t i = 0; i < 8; ++i) {
      const size_t bytes = kSizes[(i + static_cast<size_t>(round) * 3) % kSizes.size()];
      job_->Send(flows_[0], bytes);
      job_->Receive(flows_[1], bytes + 1);
    }
    ASSERT_TRUE(job_->RunUntilDone(Patience()));
  }
  ExpectAllWell();
  EXPECT_EQ(Fences(), 0);
}

TEST_P(Contract, EagerBufferMayBeOverwrittenBeforeAnybodyReceives) {
  Make();
  if (!world_->HasEagerMessages()) GTEST_SKIP() << "needs the trait: eager messages";
  Start(1);
  for (const size_t bytes : {size_t{8}, kEagerBytes, size_t{0}, size_t{5000}}) job_->Send(flows_[0], bytes);
  // The job overwrites each as soon as it is reported done.
  ASSERT_TRUE(job_->RunUntil([&] { return world_->Sent(flows_[0]) == 5; }, Patience())) << "small messages wait for the receiver";
  EXPECT_EQ(world_->Received(flows_[0]), 1u);
  for (const size_t bytes : {size_t{8}, kEagerBytes, size_t{0}, size_t{5000}}) job_->Receive(flows_[0], bytes);
  ExpectAllWell();
}

TEST_P(Contract, EagerCreditIsKept) {
  Make();
  Start(1);
  // One more than the credit: the last must wait, and none may be lost.
  for (uint64_t i = 0; i < kEagerMessages; ++i) job_->Send(flows_[0], 64 + i);
  job_->RunFor(100 * kMs);
  job_->Send(flows_[0], 9);
  job_->RunFor(100 * kMs);
  EXPECT_LE(world_->Sent(flows_[0]), 1 + kEagerMessages);
  for (uint64_t i = 0; i < kEagerMessages; ++i) job_->Receive(flows_[0], 64 + i);
  job_->Receive(flows_[0], 9);
  ExpectAllWell();
}

TEST_P(Contract, EagerCopyIsReplayedWhenItsRailDies) {
  Make({.silence = 100 * kMs});
  if (!world_->HasEagerMessages()) GTEST_SKIP() << "needs the trait: eager messages";
  Start(kRails);
  for (const int rail : {0, 1}) world_->Silence(1, rail);
  for (const int flow : flows_)
    for (int i = 0; i < 4; ++i) job_->Send(flow, 2000);
  ASSERT_TRUE(job_->RunUntil([&] { return std::all_of(flows_.begin(), flows_.end(), [&](int flow) { return world_->Sent(flow) == 5; }); },
                             Patience()));
  for (const int flow : flows_)
    for (int i = 0; i < 4; ++i) job_->Receive(flow, 2000);
  ExpectAllWell();
}

TEST_P(Contract, AcknowledgedOnlyWhenThePeersProcessHasIt) {
  Make();
  Start(1);
  // Small enough for the kernel of a stopped process to take it all, too large for the eager path.
  job_->Receive(flows_[0], 100 * kKiB);
  job_->RunFor(50 * kMs);  // the grant is there
  world_->StopProcess(1);
  job_->Send(flows_[0], 100 * kKiB);
  job_->RunFor(500 * kMs);
  EXPECT_EQ(world_->Sent(flows_[0]), 1u) << "a transport's acknowledgement was taken for the receiver's";
  world_->ContinueProcess(1);
  ExpectAllWell();
  EXPECT_EQ(Fences(), 0) << "a stopped process is no fault";
}

TEST_P(Contract, ExactlyOnceEverySize) {
  Make();
  Start(kRails);
  for (const size_t bytes : kSizes)
    for (const int flow : flows_) job_->Exchange(flow, bytes);
  ExpectAllWell();
  EXPECT_EQ(job_->received_messages(), (kSizes.size() + 2) * kRails) << "with the first and the last";
  EXPECT_EQ(Fences(), 0);
}

TEST_P(Contract, ExactlyOnceBothWaysAtOnce) {
  Make();
  Start(2);
  flows_.push_back(job_->Open(1, 2));
  flows_.push_back(job_->Open(1, 3));
  ASSERT_TRUE(job_->RunUntilOpen(Patience()));
  for (int round = 0; round < 3; ++round)
    for (const int flow : flows_) {
      job_->Exchange(flow, 0);
      job_->Exchange(flow, 700'000);
    }
  ExpectAllWell();
}

// Gradients and a job's flags: who copies the large ones changes hands whenever some small ones come together.
TEST_P(Contract, ExactlyOnceLargeAmongSmall) {
  Make();
  Start(kRails);
  flows_.push_back(job_->Open(1, 0));
  flows_.push_back(job_->Open(1, 1));
  ASSERT_TRUE(job_->RunUntilOpen(Patience()));
  for (int round = 0; round < 40; ++round) {
    for (size_t i = 0; i < flows_.size(); ++i) {
      if (i % 2 == 0) {
        job_->Exchange(flows_[i], 300'000 + static_cast<size_t>(round) * 1000);
      } else {
        // More than end a run of bulk.
        for (int small = 0; small < net::tuning::kSmallMessagesMost + 8; ++small)
          job_->Exchange(flows_[i], 2000 + static_cast<size_t>(round));
      }
    }
    ASSERT_TRUE(job_->RunUntilDone(Patience())) << "round " << round;
  }
  ExpectAllWell();
  EXPECT_EQ(Fences(), 0);
}

TEST_P(Contract, FlushDoneMeansThereWhicheverRailsCarriedIt) {
  Make({.rail_bytes_per_s = 25'000'000});
  Start(1);
  // A lost rail makes the flow use all the others; each message is looked at the moment it is reported done.
  world_->Cut(0, 0);
  ASSERT_TRUE(job_->RunUntil([&] { return Fences() > 0; }, Patience()));
  uint64_t before[kRails];
  for (int rail = 0; rail < kRails; ++rail) before[rail] = world_->LeftBytes(0, rail);
  for (int i = 0; i < 6; ++i) job_->Exchange(flows_[0], 2 * kMiB);
  ExpectAllWell();
  for (int rail = 1; rail < kRails; ++rail) EXPECT_GT(world_->LeftBytes(0, rail) - before[rail], 1 * kMiB) << "rail " << rail;
}

}  // namespace
}  // namespace r2cc::contract
