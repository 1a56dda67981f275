#include "netplugin/flow/stripe.h"

#include <gtest/gtest.h>

#include <tuple>

#include <algorithm>
#include <vector>

namespace r2cc::net {
namespace {

using Links = std::vector<LinkShare>;

TEST(Stripe, HealthyFlowsStayOnTheirOwnLink) {
  const Links healthy(4, LinkShare{true, 1000, 0});
  EXPECT_FALSE(Spread(healthy));
  for (LinkId home = 0; home < 4; ++home)
    for (LinkId link = 0; link < 4; ++link) EXPECT_EQ(Carries(healthy, StripeMode::kBalance, home, link), home == link);
  Links one_lost = healthy;
  one_lost[2].usable = false;
  EXPECT_TRUE(Spread(one_lost));
  EXPECT_TRUE(Carries(one_lost, StripeMode::kBalance, 2, 0));
  Links one_light = healthy;
  one_light[0].weight_permille = 500;
  EXPECT_TRUE(Spread(one_light));
}

TEST(Stripe, ModesOneRailAndMigrate) {
  Links links(4, LinkShare{true, 1000, 0});
  links[1].usable = false;
  for (LinkId link = 0; link < 4; ++link) {
    EXPECT_EQ(Carries(links, StripeMode::kOneRail, 1, link), link == 1);
    EXPECT_EQ(Carries(links, StripeMode::kMigrate, 1, link), link == 2) << "the next usable one, whole";
    EXPECT_EQ(Carries(links, StripeMode::kMigrate, 3, link), link == 3);
  }
}

// A weight is a ceiling. Links that are always eager end up in proportion to the weights; every combination of 4 weights.
TEST(Stripe, EagerLinksCarryInProportionToTheirWeights) {
  const uint16_t weights[] = {0, 100, 250, 500, 1000};
  for (uint16_t a : weights)
    for (uint16_t b : weights)
      for (uint16_t c : weights)
        for (uint16_t d : weights) {
          Links links = {{true, a, 0}, {true, b, 0}, {true, c, 0}, {true, d, 0}};
          for (int round = 0; round < 4000; ++round) {
            const auto link = static_cast<LinkId>(round % 4);
            if (MayPull(links, StripeMode::kBalance, link)) links[link].carried_bytes += 1;
          }
          const uint16_t heaviest = std::max({a, b, c, d});
          uint64_t busiest = 0;
          for (const LinkShare& link : links) busiest = std::max(busiest, link.carried_bytes);
          ASSERT_GE(busiest, 1000u);
          for (const LinkShare& link : links) {
            if (heaviest == 0)
              EXPECT_EQ(link.carried_bytes, 1000u) << "nobody has a weight: nobody is excluded";
            else
              EXPECT_NEAR(static_cast<double>(link.carried_bytes), static_cast<double>(busiest) * link.weight_permille / heaviest, 2);
          }
        }
}

TEST(Stripe, LinksOfFullWeightPullAsTheyHaveRoom) {
  Links links = {{true, 1000, 1'000'000}, {true, 1000, 0}, {false, 1000, 0}};
  EXPECT_TRUE(MayPull(links, StripeMode::kBalance, 0)) << "a slow neighbour does not hold it back";
  EXPECT_TRUE(MayPull(links, StripeMode::kBalance, 1));
  EXPECT_FALSE(MayPull(links, StripeMode::kBalance, 2));
  EXPECT_FALSE(MayPull(links, StripeMode::kBalance, 3)) << "no such link";
}

TEST(Stripe, NoCeilingStopsAFlowThatHasOneLinkOnly) {
  const Links links = {{true, 1000, 0}, {true, 100, 1'000'000}, {false, 1000, 0}};
  EXPECT_FALSE(MayPull(links, StripeMode::kBalance, 1));
  for (const StripeMode mode : {StripeMode::kOneRail, StripeMode::kMigrate}) {
    EXPECT_TRUE(MayPull(links, mode, 1));
    EXPECT_FALSE(MayPull(links, mode, 2));
  }
}

TEST(Stripe, AnUnusableHeavyLinkDoesNotHoldTheLightOnesBack) {
  Links links = {{false, 1000, 0}, {true, 100, 1'000'000}, {true, 100, 0}};
  EXPECT_TRUE(MayPull(links, StripeMode::kBalance, 1));
}

TEST(Stripe, DetoursDoNotCountWhileAllHomeLinksAreWell) {
  Links links(3, LinkShare{true, 1000, 0});
  links[2] = LinkShare{false, 0, 0, false};
  EXPECT_FALSE(Spread(links));
  links[1].usable = false;
  EXPECT_TRUE(Spread(links));
}

TEST(Stripe, SmallMessagesAreForTheQuickestLinks) {
  Links links(3, LinkShare{true, 1000, 0});
  links[1].weight_permille = 250;
  EXPECT_EQ(SmallCarrier(links, 0), 0);
  EXPECT_EQ(SmallCarrier(links, 1), 2);
  links[2].usable = false;
  EXPECT_EQ(SmallCarrier(links, 1), 0);
  EXPECT_EQ(SmallCarrier(links, 2), 0);
  links[0].usable = false;
  EXPECT_EQ(SmallCarrier(links, 0), 1) << "it is the quickest that is left";
  links[1].usable = false;
  EXPECT_EQ(SmallCarrier(links, 2), 2);
}

TEST(ChunkBytes, GrowWithTheRateByPowersOfTwo) {
  for (const auto& [rate_bytes_per_s, bytes] : {std::pair(0.0, 1u << 17), std::pair(1e9, 1u << 17), std::pair(1.4e9, 1u << 18),
                                                std::pair(2.5e9, 1u << 18), std::pair(3e9, 1u << 19), std::pair(1e12, 1u << 19)})
    EXPECT_EQ(ChunkBytesOfRate(rate_bytes_per_s), bytes) << rate_bytes_per_s;
}

TEST(DealtChunkBytes, AreWhatTheSlowestRailSendsInTwoMillisecondsWithinBounds) {
  for (const auto& [slowest_bytes_per_s, bytes] :
       {std::pair(0.0, 1u << 17), std::pair(1e3, 1u << 15), std::pair(16e6, 1u << 15), std::pair(40e6, 1u << 16), std::pair(1e9, 1u << 17)})
    EXPECT_EQ(DealtChunkBytes(slowest_bytes_per_s), bytes) << slowest_bytes_per_s;
}

TEST(CarriedFraction, IsKnownWhileChunksAreDealtOutAndSomethingWasCarried) {
  constexpr uint64_t kMiB = 1 << 20;
  Links links(4, LinkShare{true, 1000, 4 * kMiB});
  links[1].carried_bytes = kMiB;
  EXPECT_EQ(CarriedFraction(links, 1), 0) << "each flow keeps to its own link";
  links[3].usable = false;
  EXPECT_EQ(CarriedFraction(links, 1), 0.25);
  EXPECT_EQ(CarriedFraction(links, 3), 0);
  EXPECT_EQ(CarriedFraction(links, 4), 0) << "no such link";
  for (LinkShare& link : links) link.carried_bytes = 0;
  EXPECT_EQ(CarriedFraction(links, 1), 0);
}

TEST(CeilingBinds, WhereALinkHasCarriedWhatItWasAllowed) {
  constexpr uint64_t kMiB = 1 << 20;
  Links links(3, LinkShare{true, 1000, 4 * kMiB});
  EXPECT_FALSE(CeilingBinds(links, 1)) << "it has none";
  links[1].weight_permille = 500;
  links[1].carried_bytes = 2 * kMiB - 128 * 1024;
  EXPECT_TRUE(CeilingBinds(links, 1));
  links[1].carried_bytes = kMiB;
  EXPECT_FALSE(CeilingBinds(links, 1)) << "it had room for more";
  links[1].weight_permille = 0;
  EXPECT_TRUE(CeilingBinds(links, 1));
  links[1].usable = false;
  EXPECT_FALSE(CeilingBinds(links, 1));
  EXPECT_FALSE(CeilingBinds(links, 3)) << "no such link";
}

TEST(EvenChunkBytes, GiveEachLinkAsManyChunksOfAMessage) {
  constexpr uint32_t kDealt = 128 * 1024;
  for (const uint64_t message_bytes : {129u << 10, 512u << 10, 1000u << 10, 4u << 20})
    for (size_t links = 1; links <= 8; ++links) {
      const uint32_t chunk_bytes = EvenChunkBytes(message_bytes, kDealt, links);
      EXPECT_EQ(ChunkCount(message_bytes, chunk_bytes) % links, 0u) << message_bytes << " on " << links;
      EXPECT_EQ(chunk_bytes % kChunkAlignment, 0u);
      EXPECT_LE(chunk_bytes, kDealt * 3 / 2);
    }
  EXPECT_EQ(EvenChunkBytes(512 << 10, kDealt, 3), 174'848u) << "a third";
}

TEST(EvenChunkBytes, LeaveWhatIsNotSharedByLinksAlikeAsItIs) {
  EXPECT_EQ(EvenChunkBytes(4 << 20, 64 << 10, 0), 64u << 10);
  EXPECT_EQ(EvenChunkBytes(64 << 10, 64 << 10, 3), 64u << 10) << "one chunk";
}

TEST(LinksAlike, AreThoseThatCarryIfNoneCarriesLess) {
  Links links(4, LinkShare{true, 1000, 0});
  EXPECT_EQ(LinksAlike(links), 4u);
  links[1].usable = false;
  links[2].weight_permille = 0;
  EXPECT_EQ(LinksAlike(links), 2u);
  links[3].weight_permille = 125;
  EXPECT_EQ(LinksAlike(links), 0u);
}

TEST(CallBytes, AWorkerLeavesTheRestOfALargeMessageToOthers) {
  EXPECT_EQ(CallBytes(1 << 20, false), 1u << 20);
  EXPECT_EQ(CallBytes(1 << 20, true), kWorkerCallBytes);
  EXPECT_EQ(CallBytes(1 << 17, true), 1u << 17) << "what the queue takes";
}

TEST(QueueLimit, IsWhatTheRailSendsInAFewMillisecondsWithinBounds) {
  EXPECT_EQ(QueueLimitBytes(0, false), 1u << 20) << "not known";
  EXPECT_EQ(QueueLimitBytes(250e6, false), 500'000u);
  EXPECT_EQ(QueueLimitBytes(1e9, false), 1u << 20);
  EXPECT_EQ(QueueLimitBytes(1e6, false), 1u << 17);
}

TEST(QueueLimit, IsSmallWhileChunksAreDealtOut) {
  for (const double rate : {0.0, 1e9}) EXPECT_EQ(QueueLimitBytes(rate, true), 1u << 18);
  EXPECT_EQ(QueueLimitBytes(1e6, true), 1u << 15);
}

TEST(HoldLimit, IsFiveMillisecondsOfASlowRailAndNoneOfAQuickOne) {
  EXPECT_EQ(HoldLimitBytes(0, 0, false), 0u) << "not known";
  EXPECT_EQ(HoldLimitBytes(60e6, 0, false), 300'000u);
  EXPECT_EQ(HoldLimitBytes(1e9, 0, false), 0u);
}

TEST(HoldLimit, IsLessForASlowRailWhileChunksAreDealtOut) {
  EXPECT_EQ(HoldLimitBytes(1e6, 0, false), 256u * 1024);
  EXPECT_EQ(HoldLimitBytes(1e6, 0, true), 96u * 1024);
  EXPECT_EQ(HoldLimitBytes(60e6, 0, true), 300'000u);
}

TEST(HoldLimit, LeavesARateThatItKeepsLowRoomToGrow) {
  for (const bool spread : {false, true}) {
    for (const Nanos round_trip : {kNanosPerMs / 10, 3 * kNanosPerMs, 20 * kNanosPerMs}) {
      double rate = 1e6;
      for (int rounds = 0; rounds < 50 && HoldLimitBytes(rate, round_trip, spread) > 0; ++rounds)
        rate = static_cast<double>(HoldLimitBytes(rate, round_trip, spread)) / static_cast<double>(round_trip) *
               static_cast<double>(kNanosPerSecond);
      EXPECT_GT(rate, 75e6) << round_trip;
    }
  }
}

TEST(SocketsInUse, GrowWithTheRate) {
  for (const auto& [rate_bytes_per_s, sockets, in_use] :
       {std::tuple(0.0, 1, 1), std::tuple(1e12, 1, 1), std::tuple(0.0, 4, 2), std::tuple(1.0e9, 4, 2), std::tuple(1.3e9, 4, 3),
        std::tuple(1e12, 4, 4), std::tuple(1e12, 0, 0)})
    EXPECT_EQ(SocketsInUse(rate_bytes_per_s, sockets), in_use) << rate_bytes_per_s << " " << sockets;
}

}  // namespace
}  // namespace r2cc::net
