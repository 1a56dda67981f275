// Repaired, flapping, slow and missing rails; aborts and ends.
#include "tests/contract/fixture.h"

namespace r2cc::contract {
namespace {

TEST_P(Contract, RepairedRailIsUsedAgain) {
  Make({.silence = 100 * kMs});
  Start(kRails);
  struct Case {
    End end;
    bool silent;
  };
  for (const Case& one : {Case{0, false}, {1, false}, {1, true}}) {
    const int up = LinksUp(0, 2);
    one.silent ? world_->Silence(one.end, 2) : world_->Cut(one.end, 2);
    ASSERT_TRUE(TrafficUntil([&, fences = Fences(0, 2)] { return Fences(0, 2) > fences; }));
    ASSERT_TRUE(TrafficMore(8));
    world_->Heal(one.end, 2);
    ASSERT_TRUE(TrafficUntil([&] { return LinksUp(0, 2) > up; })) << "nobody tries it";
    const uint64_t before = world_->LeftBytes(0, 2);
    ASSERT_TRUE(TrafficUntil([&] { return world_->LeftBytes(0, 2) - before > 8 * kMiB; })) << "tried, and not used";
  }
  ExpectAllWell();
  EXPECT_EQ(Fences(), 3);
}

// Every incarnation carries a data check before the first chunk: what is lost on the way up was never in flight.
TEST_P(Contract, RepairedRailThatDiesWhileItIsProvedLosesNothing) {
  Make({.silence = 100 * kMs});
  Start(kRails);
  for (int round = 0; round < 6; ++round) {
    world_->Cut(round % 2, 1);
    ASSERT_TRUE(TrafficMore(4));
    world_->Heal(round % 2, 1);
    ASSERT_TRUE(TrafficFor(round * kMs));
  }
  world_->Cut(0, 1);
  ASSERT_TRUE(TrafficMore(8));
  const int up = LinksUp(0, 1);
  world_->Heal(0, 1);
  ASSERT_TRUE(TrafficUntil([&] { return LinksUp(0, 1) > up; }));
  ExpectAllWell();
}

TEST_P(Contract, RepairedRailThatFlapsCostsAFewMigrations) {
  Make({.silence = 100 * kMs});
  Start(kRails);
  constexpr int kFlaps = 8;
  for (int flap = 0; flap < kFlaps; ++flap) {
    world_->Cut(0, 1);
    ASSERT_TRUE(TrafficFor(60 * kMs));
    world_->Heal(0, 1);
    ASSERT_TRUE(TrafficFor(60 * kMs));
  }
  EXPECT_LE(Fences(), 2 * kFlaps);
  EXPECT_EQ(Fences(), Fences(0, 1)) << "the others are well";
  const int up = LinksUp(0, 1);
  const uint64_t before = world_->LeftBytes(0, 1);
  ASSERT_TRUE(TrafficUntil([&] { return LinksUp(0, 1) > up || world_->LeftBytes(0, 1) - before > 8 * kMiB; })) << "it is steady now";
  ExpectAllWell();
}

TEST_P(Contract, AbortOfEitherSideIsTheOthersError) {
  for (const bool sender_aborts : {false, true}) {
    SCOPED_TRACE(sender_aborts ? "the sender aborts" : "the receiver aborts");
    Make();
    StartOn({0, 0, 1});
    ASSERT_TRUE(TrafficMore(6));
    const int aborted = flows_[0];
    job_->Exchange(aborted, 32 * kLarge);
    job_->RunFor(20 * kMs);
    sender_aborts ? world_->CloseSend(aborted) : world_->CloseReceive(aborted);
    job_->Reset(aborted);
    flows_.erase(flows_.begin());
    const auto state = [&] { return sender_aborts ? world_->receiver(aborted) : world_->sender(aborted); };
    ASSERT_TRUE(job_->RunUntil([&] { return state() == FlowState::kFailed; }, Patience())) << "nobody is told";
    EXPECT_NE(sender_aborts ? world_->ReceiverError(aborted) : world_->SenderError(aborted), "");
    ASSERT_TRUE(TrafficMore(6));
    sender_aborts ? world_->CloseReceive(aborted) : world_->CloseSend(aborted);
    job_->Reset(aborted);
    ASSERT_TRUE(TrafficFor(100 * kMs));
    ExpectAllWell();
    TearDown();
  }
}

// Chunks are on their way, granted and unplaced, when a side closes: the link may end for it, the flows beside it go on.
TEST_P(Contract, AbortWithChunksOnTheirWayHarmsNoOtherFlow) {
  Make();
  StartOn({0, 0, 0, 0, 0, 0});
  for (int i = 0; i < 4; ++i) {
    const int closed = flows_.back();
    for (const int flow : flows_) job_->Exchange(flow, 6 * kLarge);
    job_->RunFor((10 + 15 * i) * kMs);
    i % 2 == 0 ? world_->CloseSend(closed) : world_->CloseReceive(closed);
    job_->Reset(closed);
    flows_.pop_back();
    ASSERT_TRUE(TrafficMore(6));
    i % 2 == 0 ? world_->CloseReceive(closed) : world_->CloseSend(closed);
    job_->Reset(closed);
  }
  ExpectAllWell();
}

TEST_P(Contract, AbortWaitsForNoPeer) {
  Make({.silence = 100 * kMs});
  StartOn({0, 1, 2});
  for (const int flow : flows_) job_->Exchange(flow, 32 * kLarge);
  job_->RunFor(20 * kMs);
  world_->StopProcess(1);
  const Nanos since = world_->Now();
  world_->CloseSend(flows_[0]);
  EXPECT_LT(world_->Now() - since, kSecond * Slack()) << "close waits for a stopped peer";
  job_->Reset(flows_[0]);
  world_->ContinueProcess(1);
  world_->StopProcess(0);
  const Nanos again = world_->Now();
  world_->CloseReceive(flows_[1]);
  EXPECT_LT(world_->Now() - again, kSecond * Slack());
  job_->Reset(flows_[1]);
  world_->ContinueProcess(0);
  flows_.erase(flows_.begin(), flows_.begin() + 2);
  ExpectAllWell();
}

// A job that ends as soon as its last receive is done, while the channel that would carry the acknowledgement is deaf.
TEST_P(Contract, LastAcksOutliveFlowAndProcess) {
  for (const int deaf : {0, 1, kOob, kRails}) {  // kRails: none
    SCOPED_TRACE("deaf: " + std::to_string(deaf));
    Make({.silence = 100 * kMs});
    StartOn({0, 1});
    for (const int flow : flows_) job_->Exchange(flow, 2 * kLarge);
    job_->RunFor(10 * kMs);
    if (deaf < kRails) world_->Silence(1, deaf);
    ASSERT_TRUE(job_->RunUntil([&] { return job_->received_messages() == 2 * flows_.size(); }, Patience()));
    for (const int flow : flows_) world_->CloseReceive(flow);
    job_->Forget(1);
    world_->EndProcess(1);
    ASSERT_TRUE(job_->RunUntil([&] { return job_->done(); }, Patience())) << "the last acknowledgement was lost";
    TearDown();
  }
}

TEST_P(Contract, GrayRailIsUsedForWhatItMovesAndNotGivenUp) {
  // As below.
  Make({.rail_bytes_per_s = 10'000'000});
  Start(kRails);
  const double healthy = Goodput(kSecond);
  EXPECT_GT(healthy, Fair() * kRails * static_cast<double>(options_.rail_bytes_per_s)) << "the rails are not filled";
  world_->Slow(0, 1, 4);
  ASSERT_TRUE(TrafficFor(kSecond));  // it may be found out
  const double gray = Goodput(kSecond);
  EXPECT_GT(gray, Fair() * healthy * 3.25 / 4) << "healthy " << healthy * 1e-6 << " MB/s, gray " << gray * 1e-6;
  EXPECT_EQ(Fences(), 0) << "slow is not dead";
  EXPECT_TRUE(TrafficUntil([&] { return Count(0, RailReport::What::kRailSlow, 1) > 0; }, 5 * kSecond)) << "the daemon is not told";
  EXPECT_EQ(Count(0, RailReport::What::kRailSlow), Count(0, RailReport::What::kRailSlow, 1)) << "the others are well";
  world_->Slow(0, 1, 1);
  EXPECT_TRUE(TrafficUntil([&] { return Count(0, RailReport::What::kRailSteady, 1) > 0; }, 5 * kSecond)) << "nor that it is over";
  EXPECT_GT(Goodput(600 * kMs), Fair() * healthy);
  ExpectAllWell();
}

TEST_P(Contract, PathsOpenWithRailsDeadAtTheStart) {
  Make({.silence = 100 * kMs, .cut_at_start = {{0, 1}, {1, 2}}});
  world_->Silence(1, 3);
  for (int rail = 0; rail < kRails; ++rail) flows_.push_back(job_->Open(0, rail));
  ASSERT_TRUE(job_->RunUntilOpen(Patience()));
  ASSERT_TRUE(TrafficMore(16)) << "one rail of four";
  for (const auto& [end, rail] : {std::pair(0, 1), {1, 2}, {1, 3}}) {
    world_->Heal(end, rail);
    ASSERT_TRUE(TrafficUntil([&, rail = rail] { return LinksUp(0, rail) > 0; })) << "rail " << rail;
  }
  ExpectAllWell();
}

TEST_P(Contract, PathsFaultsDuringConnectAndAccept) {
  for (int variant = 0; variant < 4; ++variant) {
    SCOPED_TRACE("variant " + std::to_string(variant));
    Make({.silence = 100 * kMs});
    for (int rail = 0; rail < kRails; ++rail) flows_.push_back(job_->Open(0, rail));
    if (variant == 0) world_->Silence(1, kOob);
    if (variant == 1) world_->StopProcess(1);
    if (variant >= 2) job_->RunFor(variant * kMs);
    world_->Cut(variant % 2, 0);
    world_->Silence(1, 1);
    job_->RunFor(150 * kMs);
    world_->Cut(0, 2);
    world_->Heal(variant % 2, 0);
    world_->Heal(1, kOob);
    if (variant == 1) world_->ContinueProcess(1);
    ASSERT_TRUE(job_->RunUntilOpen(Patience())) << "flows do not open";
    ASSERT_TRUE(TrafficMore(8));
    world_->Heal(1, 1);
    world_->Heal(0, 2);
    ExpectAllWell();
    TearDown();
  }
}

TEST_P(Contract, PathsAllLostAndBackWithinTheDeadline) {
  Make({.deadline = 4 * kSecond, .silence = 100 * kMs});
  Start(kRails);
  for (const bool out_of_band_too : {false, true}) {
    ASSERT_TRUE(TrafficMore(8));
    for (const int flow : flows_) job_->Exchange(flow, 4 * kLarge);
    for (int rail = out_of_band_too ? kOob : 0; rail < kRails; ++rail) world_->Cut(std::max(rail, 0) % 2, rail);
    job_->RunFor(kSecond);
    for (int rail = kOob; rail < kRails; ++rail) world_->Heal(std::max(rail, 0) % 2, rail);
    ASSERT_TRUE(job_->RunUntilDone(Patience()));
  }
  ExpectAllWell();
}

TEST_P(Contract, PathsAllLostBeyondTheDeadlineIsAnErrorAtBothEnds) {
  // Slow enough for the traffic to outlast the faults, however long a busy machine takes for them.
  Make({.deadline = kShortDeadline, .silence = 100 * kMs, .rail_bytes_per_s = 5'000'000});
  Start(2);
  ASSERT_TRUE(TrafficMore(4));
  for (const int flow : flows_) job_->Exchange(flow, 16 * kLarge);
  const Nanos since = world_->Now();
  for (int rail = 0; rail < kRails; ++rail) world_->Silence(1, rail);
  job_->RunFor(20 * kMs);
  ASSERT_TRUE(job_->busy()) << "the traffic was over before the rails were silent";
  ASSERT_TRUE(job_->RunUntil([&] { return AllFailed(); }, Patience())) << "waits for ever";
  EXPECT_GE(world_->Now() - since, kShortDeadline - 100 * kMs) << "an error is final: never early";
  EXPECT_LE(world_->Now() - since, kShortDeadline + 3 * kSecond * Slack());
  for (const std::string& error : {world_->SenderError(flows_[0]), world_->ReceiverError(flows_[0])}) {
    EXPECT_NE(error.find(" gave up on "), std::string::npos) << error;
    EXPECT_NE(error.find("; r2ccctl "), std::string::npos) << error << ": it does not name the command that explains it";
  }
  for (const int flow : flows_) {
    world_->CloseSend(flow);
    world_->CloseReceive(flow);
    job_->Reset(flow);
  }
}

// Not even the out-of-band channel: nobody refuses, nobody answers. That takes the kernel's keep-alive besides the deadline.
TEST_P(Contract, PathsToANodeThatVanishedAreAnErrorAtBothEnds) {
  // Slow enough for the traffic to outlast the faults, however long a busy machine takes for them.
  Make({.deadline = kShortDeadline, .silence = 100 * kMs, .rail_bytes_per_s = 5'000'000});
  Start(2);
  ASSERT_TRUE(TrafficMore(4));
  for (const int flow : flows_) job_->Exchange(flow, 16 * kLarge);
  const Nanos since = world_->Now();
  for (int rail = kOob; rail < kRails; ++rail) world_->Silence(1, rail);
  job_->RunFor(20 * kMs);
  ASSERT_TRUE(job_->busy()) << "the traffic was over before the rails were silent";
  ASSERT_TRUE(job_->RunUntil([&] { return AllFailed(); }, Patience())) << "waits for ever";
  EXPECT_GE(world_->Now() - since, kShortDeadline - 100 * kMs) << "an error is final: never early";
}

TEST_P(Contract, PathsThatTheTwoEndsLostDifferently) {
  // Slow enough for the rails to be the limit, not the processors, even with a sanitizer.
  for (const bool full_fabric : {false, true}) {
    SCOPED_TRACE(full_fabric ? "full fabric" : "rail fabric");
    Make({.full_fabric = full_fabric, .silence = 100 * kMs, .rail_bytes_per_s = 10'000'000});
    Start(kRails);
    const double healthy = Goodput(kSecond);
    world_->Cut(0, 0);
    world_->Cut(1, 1);
    // On a full fabric the sender's rail 1 and the receiver's rail 0 are a way of their own.
    const uint64_t cut = world_->LeftBytes(0, 1);
    ASSERT_TRUE(TrafficUntil([&] { return !full_fabric || world_->LeftBytes(0, 1) - cut > kLarge; }, 5 * kSecond))
        << "a rail that works is idle";
    ASSERT_TRUE(TrafficFor(300 * kMs));
    const uint64_t before = world_->LeftBytes(0, 1);
    const double left = Goodput(1500 * kMs);
    EXPECT_GT(left, Fair() * healthy * (full_fabric ? 3 : 2) / kRails) << "healthy " << healthy * 1e-6 << " MB/s, left " << left * 1e-6;
    if (full_fabric) {
      EXPECT_GT(world_->LeftBytes(0, 1) - before, 0.3 * 1.5 * static_cast<double>(options_.rail_bytes_per_s))
          << "a rail that works is idle";
    }
    const int up[] = {LinksUp(0, 0), LinksUp(0, 1)};
    world_->Heal(0, 0);
    world_->Heal(1, 1);
    ASSERT_TRUE(TrafficUntil([&] { return LinksUp(0, 0) > up[0] && LinksUp(0, 1) > up[1]; }));
    ASSERT_TRUE(TrafficFor(300 * kMs));
    EXPECT_GT(Goodput(kSecond), Fair() * healthy);
    ExpectAllWell();
    TearDown();
  }
}

}  // namespace
}  // namespace r2cc::contract
