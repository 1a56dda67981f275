#include "netplugin/flow/stripe.h"

#include <gtest/gtest.h>

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

TEST(Stripe, WhoeverWantsItHasHealthyFlowsDealtOut) {
  Links links(4, LinkShare{true, 1000, 0});
  for (LinkShare& link : links) link.dealt = true;
  EXPECT_TRUE(Spread(links));
  EXPECT_TRUE(Carries(links, StripeMode::kBalance, 2, 0));
  EXPECT_FALSE(Carries(links, StripeMode::kMigrate, 2, 0)) << "in the mode that deals nothing out";
  EXPECT_EQ(SmallMessageLink(links, 2), 2) << "small messages stay";
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

// A weight is a cap. Links that are always eager end up in proportion to the weights; every combination of 4 weights.
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

TEST(Stripe, CrossRailLinksDoNotCountWhileAllHomeLinksAreWell) {
  Links links(3, LinkShare{true, 1000, 0});
  links[2] = LinkShare{false, 0, 0, false};
  EXPECT_FALSE(Spread(links));
  links[1].usable = false;
  EXPECT_TRUE(Spread(links));
}

TEST(Stripe, SmallMessagesAreForTheQuickestLinks) {
  Links links(3, LinkShare{true, 1000, 0});
  links[1].weight_permille = 250;
  EXPECT_EQ(SmallMessageLink(links, 0), 0);
  EXPECT_EQ(SmallMessageLink(links, 1), 2);
  links[2].usable = false;
  EXPECT_EQ(SmallMessageLink(links, 1), 0);
  EXPECT_EQ(SmallMessageLink(links, 2), 0);
  links[0].usable = false;
  EXPECT_EQ(SmallMessageLink(links, 0), 1) << "it is the quickest that is left";
  links[1].usable = false;
  EXPECT_EQ(SmallMessageLink(links, 2), 2);
}

TEST(CapBinds, WhereALinkHasCarriedWhatItWasAllowed) {
  constexpr uint64_t kMiB = 1 << 20;
  Links links(3, LinkShare{true, 1000, 4 * kMiB});
  EXPECT_FALSE(CapBinds(links, 1)) << "it has none";
  links[1].weight_permille = 500;
  links[1].carried_bytes = 2 * kMiB - 128 * 1024;
  EXPECT_TRUE(CapBinds(links, 1));
  links[1].carried_bytes = kMiB;
  EXPECT_FALSE(CapBinds(links, 1)) << "it had room for more";
  links[1].weight_permille = 0;
  EXPECT_TRUE(CapBinds(links, 1));
  links[1].weight_permille = links[0].weight_permille;
  EXPECT_FALSE(CapBinds(links, 1)) << "each flow keeps to its own link";
  links[1].weight_permille = 125;
  links[1].usable = false;
  EXPECT_FALSE(CapBinds(links, 1));
  EXPECT_FALSE(CapBinds(links, 3)) << "no such link";
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

}  // namespace
}  // namespace r2cc::net
