#include "netplugin/flow/stripe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "netplugin/flow/tuning.h"

namespace r2cc::net {
namespace {

using Links = std::vector<LinkShare>;

constexpr LinkShare kSound{.usable = true, .weight_permille = 1000};
constexpr uint64_t kChunk = 64 * 1024;
constexpr Nanos kNow = 1000 * kNanosPerSecond;
constexpr Nanos kForever = std::numeric_limits<Nanos>::max();

bool Pulls(const Links& links, LinkId link, uint64_t ready_bytes = kChunk) {
  return LeavesUntil(links, link, kChunk, ready_bytes, kNow) == kNow;
}

TEST(Stripe, HealthyFlowsStayOnTheirOwnLink) {
  const Links healthy(4, kSound);
  EXPECT_FALSE(Spread(healthy));
  for (LinkId home = 0; home < 4; ++home)
    for (LinkId link = 0; link < 4; ++link) EXPECT_EQ(Carries(healthy, StripeMode::kBalance, false, home, link), home == link);
  Links one_lost = healthy;
  one_lost[2].usable = false;
  EXPECT_TRUE(Spread(one_lost));
  EXPECT_TRUE(Carries(one_lost, StripeMode::kBalance, true, 2, 0));
  Links one_light = healthy;
  one_light[0].weight_permille = 500;
  EXPECT_TRUE(Spread(one_light));
  Links one_slow = healthy;
  one_slow[3].slow = true;
  EXPECT_TRUE(Spread(one_slow));
}

TEST(Stripe, HealthyFlowsAreStripedIfAskedFor) {
  Links links(4, kSound);
  EXPECT_TRUE(Carries(links, StripeMode::kBalance, true, 2, 0));
  EXPECT_FALSE(Carries(links, StripeMode::kMigrate, true, 2, 0)) << "in the mode that stripes nothing";
  EXPECT_EQ(SmallMessageLink(links, 2), 2) << "small messages stay";
}

TEST(Stripe, ModesOneRailAndMigrate) {
  Links links(4, kSound);
  links[1].usable = false;
  for (LinkId link = 0; link < 4; ++link) {
    EXPECT_EQ(Carries(links, StripeMode::kOneRail, false, 1, link), link == 1);
    EXPECT_EQ(Carries(links, StripeMode::kMigrate, false, 1, link), link == 2) << "the next usable one, whole";
    EXPECT_EQ(Carries(links, StripeMode::kMigrate, false, 3, link), link == 3);
  }
}

TEST(Stripe, CrossRailLinksDoNotCountWhileAllHomeLinksAreWell) {
  Links links(3, kSound);
  links[2] = LinkShare{.home = false};
  EXPECT_FALSE(Spread(links));
  links[1].usable = false;
  EXPECT_TRUE(Spread(links));
}

TEST(Stripe, SmallMessagesAreForTheQuickestLinks) {
  Links links(3, kSound);
  links[1].weight_permille = 250;
  EXPECT_EQ(SmallMessageLink(links, 0), 0);
  EXPECT_EQ(SmallMessageLink(links, 1), 2);
  links[2].slow = true;
  EXPECT_EQ(SmallMessageLink(links, 1), 0);
  EXPECT_EQ(SmallMessageLink(links, 2), 0);
  links[0].usable = false;
  EXPECT_EQ(SmallMessageLink(links, 0), 1) << "rather of little weight than slow";
  links[1].usable = false;
  EXPECT_EQ(SmallMessageLink(links, 0), 2) << "it is the quickest that is left";
}

// ---- weights ----

// Links that are always eager end up in proportion to the weights; every combination of 4 weights.
TEST(Stripe, EagerLinksCarryInProportionToTheirWeights) {
  const uint16_t weights[] = {0, 100, 250, 500, 1000};
  for (uint16_t a : weights)
    for (uint16_t b : weights)
      for (uint16_t c : weights)
        for (uint16_t d : weights) {
          Links links;
          for (const uint16_t weight : {a, b, c, d}) links.push_back({.usable = true, .weight_permille = weight});
          for (int round = 0; round < 4000; ++round) {
            const auto link = static_cast<LinkId>(round % 4);
            if (LeavesUntil(links, link, 1, 1, kNow) == kNow) Pulled(links, link, 1, kNow);
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

TEST(Stripe, AnUnusableHeavyLinkDoesNotHoldTheLightOnesBack) {
  Links links(3, kSound);
  links[0].usable = false;
  links[1].weight_permille = links[2].weight_permille = 100;
  links[1].carried_bytes = 1'000'000;
  EXPECT_TRUE(Pulls(links, 1));
}

// ---- earliest completion ----

TEST(Stripe, NothingIsLeftToOthersBeforeARateIsKnown) {
  Links links(3, kSound);
  links[0].free_at = kNow + kNanosPerSecond;
  for (LinkId link = 0; link < 3; ++link) EXPECT_TRUE(Pulls(links, link));
}

TEST(Stripe, ALinkPullsAChunkThatItFinishesBeforeTheBestOther) {
  Links links(2, kSound);
  links[0].rate_bytes_per_s = 100e6;
  links[1].rate_bytes_per_s = 25e6;
  EXPECT_TRUE(Pulls(links, 0));
  EXPECT_FALSE(Pulls(links, 1)) << "four times as long";
  const Nanos chunk_time = FinishAt(links, 0, kChunk, kNow) - kNow;
  EXPECT_EQ(LeavesUntil(links, 1, kChunk, kChunk, kNow), kNow + chunk_time);
  links[0].free_at = kNow + 2 * chunk_time;
  EXPECT_FALSE(Pulls(links, 1)) << "three times as long as that";
  links[0].free_at = kNow + 3 * chunk_time + 100;
  EXPECT_TRUE(Pulls(links, 1));
  EXPECT_FALSE(Pulls(links, 0));
}

TEST(Stripe, ASlowLinkPullsWhileMoreIsReadyThanTheOthersFinishMeanwhile) {
  Links links(4, kSound);
  for (LinkShare& link : links) link.rate_bytes_per_s = 100e6;
  links[3].rate_bytes_per_s = 10e6;
  EXPECT_FALSE(Pulls(links, 3, 29 * kChunk));
  EXPECT_TRUE(Pulls(links, 3, 31 * kChunk)) << "three links finish 30 chunks while it sends one";
}

TEST(Stripe, ALinkOfWhichNothingIsKnownIsAsGoodAsTheBest) {
  Links links(3, kSound);
  links[0].rate_bytes_per_s = 100e6;
  links[1].rate_bytes_per_s = 10e6;
  EXPECT_TRUE(Pulls(links, 2));
  EXPECT_EQ(FinishAt(links, 2, kChunk, kNow), FinishAt(links, 0, kChunk, kNow));
}

// A link that pulls had room. If it is quicker than its rate, what was expected of it long ago does not count.
TEST(Stripe, ARateThatIsTooLowHoldsALinkBackForAMoment) {
  Links links(2, kSound);
  for (LinkShare& link : links) link.rate_bytes_per_s = 10e6;
  for (int i = 0; i < 1000; ++i) Pulled(links, 0, kChunk, kNow);
  EXPECT_LE(links[0].free_at - kNow, static_cast<Nanos>((tuning::kQueuedSeconds + kChunk / 10e6) * 1e9));
}

class RandomLinks {
 public:
  explicit RandomLinks(uint32_t seed) : random_(seed) {}

  double Rate() { return std::pow(10.0, std::uniform_real_distribution(6.0, 10.5)(random_)); }
  uint64_t Below(uint64_t end) { return std::uniform_int_distribution<uint64_t>(0, end - 1)(random_); }
  Links Any() {
    Links links(1 + Below(8));
    for (LinkShare& link : links) {
      link.usable = Below(4) > 0;
      link.weight_permille = static_cast<uint16_t>(Below(3) > 0 ? 1000 : Below(1001));
      link.carried_bytes = Below(1 << 20);
      link.slow = Below(5) == 0;
      link.rate_bytes_per_s = Below(5) == 0 ? 0 : Rate();
      link.free_at = kNow - kNanosPerSecond + static_cast<Nanos>(Below(2 * kNanosPerSecond));
    }
    return links;
  }

 private:
  std::mt19937 random_;
};

// Else nobody would ever carry what is ready.
TEST(Stripe, OneUsableLinkMayAlwaysPull) {
  RandomLinks random(1);
  for (int i = 0; i < 100'000; ++i) {
    const Links links = random.Any();
    const uint64_t chunk_bytes = random.Below(1 << 20), ready_bytes = chunk_bytes + random.Below(1 << 24);
    bool any_usable = false, any_pulls = false;
    LinkId first = 0;
    Nanos first_at = kForever;
    for (LinkId link = 0; link < links.size(); ++link) {
      if (!links[link].usable) continue;
      any_usable = true;
      const auto until = LeavesUntil(links, link, chunk_bytes, ready_bytes, kNow);
      any_pulls |= until == kNow;
      const Nanos finish_at = FinishAt(links, link, chunk_bytes, kNow);
      if (!until || finish_at >= first_at) continue;
      first = link;
      first_at = finish_at;
    }
    ASSERT_EQ(any_pulls, any_usable) << i;
    if (!any_usable) continue;
    ASSERT_EQ(LeavesUntil(links, first, chunk_bytes, ready_bytes, kNow), kNow) << i << ": the one that finishes first";
  }
}

// What one link pulls makes no other link leave more.
TEST(Stripe, ALinkThatMayPullStillMayWhenAnotherHasPulled) {
  RandomLinks random(2);
  for (int i = 0; i < 100'000; ++i) {
    Links links = random.Any();
    for (LinkShare& link : links) {
      link = {.usable = true, .weight_permille = 1000, .rate_bytes_per_s = random.Rate()};
      // No more than a link with room holds: see Pulled().
      link.free_at = kNow + static_cast<Nanos>(random.Below(2 * kNanosPerMs));
    }
    const uint64_t ready_bytes = kChunk * (2 + random.Below(100));
    const auto puller = static_cast<LinkId>(random.Below(links.size()));
    Links after = links;
    Pulled(after, puller, kChunk, kNow);
    for (LinkId link = 0; link < links.size(); ++link) {
      if (link == puller || !Pulls(links, link, ready_bytes)) continue;
      // A nanosecond for rounding.
      const Nanos until = *LeavesUntil(after, link, kChunk, ready_bytes - kChunk, kNow);
      EXPECT_LE(FinishAt(after, link, kChunk, kNow), until == kNow ? kForever : until + 1) << i;
    }
  }
}

// Rails that take a chunk whenever they hold less than they send in two milliseconds, and move it at rates that differ from what is known
// by up to `wrong` either way. Gives the time until the last chunk has left, over that of rails that all end together, and of one chunk.
double Longer(RandomLinks* random, double wrong) {
  Links links(1 + random->Below(8), kSound);
  std::vector<double> rates;
  std::vector<Nanos> ends(links.size(), kNow);
  double sum = 0, best = 0;
  for (LinkShare& link : links) {
    rates.push_back(random->Rate());
    sum += rates.back();
    best = std::max(best, rates.back());
    link.rate_bytes_per_s = rates.back() * std::pow(wrong, static_cast<double>(random->Below(2001)) / 1000 - 1);
  }
  const uint64_t bytes = kChunk * (1 + random->Below(200));
  Nanos now = kNow, others_finish_at = kForever, last = now;
  for (uint64_t ready_bytes = bytes; ready_bytes > 0;) {
    LinkId puller = 0;
    Nanos finish_at = kForever, next = (now / tuning::kTickEvery + 1) * tuning::kTickEvery, left_until = kForever;
    for (LinkId link = 0; link < links.size(); ++link) {
      const Nanos room_at = ends[link] - 2 * kNanosPerMs;
      if (room_at > now) {
        next = std::min(next, room_at);
        continue;
      }
      const Nanos until = *LeavesUntil(links, link, kChunk, ready_bytes, now);
      left_until = std::min(left_until, until);
      const Nanos at = FinishAt(links, link, kChunk, now);
      if ((until > now && now < others_finish_at) || at >= finish_at) continue;
      puller = link;
      finish_at = at;
    }
    if (finish_at == kForever) {
      others_finish_at = std::min(others_finish_at, left_until);
      now = next;
      continue;
    }
    others_finish_at = kForever;
    Pulled(links, puller, kChunk, now);
    ready_bytes -= kChunk;
    ends[puller] = std::max(ends[puller], now) + static_cast<Nanos>(kChunk / rates[puller] * 1e9);
    last = std::max(last, ends[puller]);
  }
  return static_cast<double>(last - kNow) / 1e9 / (static_cast<double>(bytes) / sum + kChunk / best);
}

// The worst of 3,000 such times, and their mean.
std::pair<double, double> LongestAndMean(RandomLinks* random, double wrong) {
  constexpr int kTimes = 3000;
  double worst = 0, sum = 0;
  for (int i = 0; i < kTimes; ++i) {
    const double longer = Longer(random, wrong);
    worst = std::max(worst, longer);
    sum += longer;
  }
  return {worst, sum / kTimes};
}

TEST(Stripe, RailsEndTogetherWhateverTheirRates) {
  RandomLinks random(3);
  const auto [worst, mean] = LongestAndMean(&random, 1);
  EXPECT_LE(worst, 2);
  EXPECT_LE(mean, 1.05);
}

TEST(Stripe, RatesThatAreWrongHoldNothingUpForLong) {
  RandomLinks random(4);
  const auto [worst, mean] = LongestAndMean(&random, 2);
  // One that is half as quick as it seemed next to one that is twice as quick: four times.
  EXPECT_LE(worst, 4);
  EXPECT_LE(mean, 1.5);
}

}  // namespace
}  // namespace r2cc::net
