// Lost rails: fences, replays, and failures on top of failures.
#include "tests/contract/fixture.h"

namespace r2cc::contract {
namespace {

// One after the other, so that the channel that carries grants and acknowledgements at the moment is among them.
TEST_P(Contract, GrantedLosingAnyChannelLosesNothing) {
  Make({.silence = 100 * kMs});
  Start(kRails);
  for (int rail = kOob; rail < kRails; ++rail) {
    SCOPED_TRACE("rail " + std::to_string(rail));
    world_->Silence(1, rail);
    const Nanos until = world_->Now() + options_.silence + 150 * kMs;
    const uint64_t target = job_->received_messages() + 40;
    const auto enough = [&] { return world_->Now() >= until && job_->received_messages() >= target; };
    ASSERT_TRUE(job_->Stream(flows_, 150'000, 4, enough, Patience()));
    EXPECT_GE(Fences(0, rail), rail == kOob ? 0 : 1) << "the fault hit nothing";
    world_->Heal(1, rail);
  }
  ExpectAllWell();
}

TEST_P(Contract, FencedOnceForAllFlowsOfTheLink) {
  // Slow enough for some of it to be on its way when the rail is down, however long the cut takes.
  Make({.rail_bytes_per_s = 10'000'000});
  StartOn({1, 1, 1, 1, 1, 1});
  ASSERT_TRUE(TrafficUntil([&] { return job_->received_messages() >= 12; }));
  for (const int flow : flows_)
    for (int i = 0; i < 2; ++i) job_->Exchange(flow, kLarge);
  world_->Cut(0, 1);
  ASSERT_TRUE(TrafficUntil([&] { return Fences(0, 1) > 0 && job_->received_messages() >= 36; }));
  ExpectAllWell();
  EXPECT_EQ(Fences(), 1);
  EXPECT_GT(Replayed(), 0u) << "the cut fell between two chunks";
}

TEST_P(Contract, FencedWhicheverEndSeesIt) {
  Make();
  Start(kRails);
  // The sender's end, the receiver's, both at once.
  for (const auto& ends : std::vector<std::vector<End>>{{0}, {1}, {0, 1}}) {
    const int rail = static_cast<int>(ends.size() == 2 ? 3 : ends[0] + 1);
    ASSERT_TRUE(TrafficMore(8));
    for (const End end : ends) world_->Cut(end, rail);
    ASSERT_TRUE(TrafficUntil([&, n = job_->received_messages() + 16] { return Fences(0, rail) > 0 && job_->received_messages() >= n; }));
  }
  ExpectAllWell();
  EXPECT_EQ(Fences(), 3);
}

TEST_P(Contract, NoLateWriteFromARailThatWasOnlySilent) {
  Make({.silence = 100 * kMs});
  Start(kRails);
  for (int round = 0; round < 3; ++round) {
    const int fences = Fences(0, round);
    ASSERT_TRUE(TrafficMore(8));
    world_->Silence(1, round);
    // The lost chunks travel elsewhere and are reported done; then the old bytes, which the kernel still keeps, may come.
    ASSERT_TRUE(
        TrafficUntil([&, n = job_->received_messages() + 16] { return Fences(0, round) > fences && job_->received_messages() >= n; }));
    world_->Heal(1, round);
    ASSERT_TRUE(TrafficFor(300 * kMs));
  }
  ExpectAllWell();
}

TEST_P(Contract, ExactlyOnceInChunksOfWholeLines) {
  Make({.silence = kSecond, .chunk_bytes = 128 * 33, .rail_bytes_per_s = 25'000'000});
  Start(1);
  world_->Cut(0, 3);       // the flow is striped now
  world_->Slow(0, 1, 10);  // and one rail lags behind
  ASSERT_TRUE(job_->RunUntil([&] { return Fences() > 0; }, Patience()));
  constexpr size_t kBytes = 24 * kMiB;
  std::byte* const from = world_->Allocate(0, kBytes);
  std::byte* const to = world_->Allocate(1, kBytes);
  std::fill_n(from, kBytes, std::byte{0x33});
  std::fill_n(to, kBytes, std::byte{0x5a});
  const uint64_t received = world_->Received(flows_[0]);
  world_->Receive(flows_[0], to, kBytes);
  world_->Send(flows_[0], from, kBytes);
  // The job knows nothing of this message.
  const auto pass = [&](Nanos time) {
    for (const Nanos end = world_->Now() + time; world_->Now() < end;) world_->Pass();
  };
  int pieces = 0;
  for (int look = 0; look < 4; ++look) {
    pass(40 * kMs);
    // Whatever has arrived is in its place a moment after nothing arrives any more; shorter than anybody's patience.
    for (int rail = 0; rail < 3; ++rail) world_->Silence(1, rail);
    pass(60 * kMs);
    for (size_t at = 1; at < kBytes; ++at)
      if (to[at] == std::byte{0x33} && to[at - 1] == std::byte{0x5a}) {
        ASSERT_EQ(at % 128, 0u) << "a chunk begins within a line";
        ++pieces;
      }
    for (int rail = 0; rail < 3; ++rail) world_->Heal(1, rail);
  }
  const Nanos limit = world_->Now() + Patience();
  while (world_->Received(flows_[0]) == received && world_->Now() < limit) world_->Pass();
  EXPECT_GT(pieces, 0) << "never seen half-way: proves nothing";
  EXPECT_TRUE(std::all_of(to, to + kBytes, [](std::byte b) { return b == std::byte{0x33}; }));
}

TEST_P(Contract, NthFailureDuringTheReplay) {
  Make({.silence = 100 * kMs});
  Start(kRails);
  for (int round = 0; round < 2; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    ASSERT_TRUE(TrafficMore(8));
    // Three of four rails go within a few milliseconds, at one end or the other, with and without an event.
    const int first = round, second = (round + 1) % kRails, third = (round + 2) % kRails;
    world_->Cut(round % 2, first);
    ASSERT_TRUE(TrafficMore(1));
    world_->Silence(1, second);
    ASSERT_TRUE(TrafficMore(1));
    world_->Cut(1 - round % 2, third);
    ASSERT_TRUE(TrafficMore(12)) << "one rail is left";
    for (const int rail : {first, second, third}) {
      const int before = LinksUp(0, rail);
      world_->Heal(0, rail);
      world_->Heal(1, rail);
      ASSERT_TRUE(TrafficUntil([&] { return LinksUp(0, rail) > before; })) << "rail " << rail << " stays away";
    }
  }
  ExpectAllWell();
  EXPECT_GE(Fences(), 6);
}

TEST_P(Contract, NthFailureTakesTheChannelThatAnswersTheFence) {
  Make({.silence = 100 * kMs});
  Start(kRails);
  for (const int last : {1, 2, 3}) {
    SCOPED_TRACE("only rail " + std::to_string(last) + " is left");
    ASSERT_TRUE(TrafficMore(8));
    int up[kRails];
    for (int rail = 0; rail < kRails; ++rail) up[rail] = LinksUp(0, rail);
    // When the question goes out every other way is deaf.
    for (int rail = kOob; rail < kRails; ++rail)
      if (rail != 0 && rail != last) world_->Silence(1, rail);
    world_->Cut(0, 0);
    ASSERT_TRUE(TrafficMore(16));
    world_->Heal(0, 0);
    for (int rail = kOob; rail < kRails; ++rail) world_->Heal(1, rail);
    for (int rail = 0; rail < kRails; ++rail) {
      if (rail == last) continue;
      ASSERT_TRUE(TrafficUntil([&] { return LinksUp(0, rail) > up[rail]; })) << "rail " << rail << " stays away";
    }
  }
  ExpectAllWell();
}

TEST_P(Contract, NthFailureOfTheSameRail) {
  Make();
  Start(kRails);
  for (int round = 0; round < 4; ++round) {
    const int up = LinksUp(0, 2);
    world_->Cut(round % 2, 2);
    ASSERT_TRUE(TrafficUntil([&] { return Fences(0, 2) > round; }));
    world_->Heal(round % 2, 2);
    ASSERT_TRUE(TrafficUntil([&] { return LinksUp(0, 2) > up; }));
  }
  ExpectAllWell();
}

}  // namespace
}  // namespace r2cc::contract
