#include "netplugin/link/rail_use.h"

#include <gtest/gtest.h>

#include <vector>

#include "netplugin/flow/tuning.h"

namespace r2cc::net {
namespace {

uint64_t Lost(const std::vector<RailUse>& peers) {
  LostRails lost;
  for (const RailUse& peer : peers) lost.Add(peer);
  return lost.bits();
}

TEST(RailUse, ALinkIsLostAfterASecondAttempt) {
  RailUse use;
  use.Add(0, true, 0);
  use.Add(0, false, 10 * tuning::kRailLostAfter);
  use.Add(1, false, tuning::kRailLostAfter - 1);
  use.Add(2, false, tuning::kRailLostAfter);
  use.Add(3, false, 0);
  EXPECT_EQ(use, (RailUse{.up = 0b0001, .lost = 0b0101}));
}

TEST(LostRails, ARailIsLostWhereNoPeerIsReachedByIt) {
  EXPECT_EQ(Lost({}), 0u);
  EXPECT_EQ(Lost({{.up = 0b1111}, {.up = 0b1111}}), 0u);
  EXPECT_EQ(Lost({{.up = 0b1011, .lost = 0b0100}, {.up = 0b1011, .lost = 0b0100}}), 0b0100u);
  EXPECT_EQ(Lost({{.up = 0b1100, .lost = 0b0011}, {.up = 0b1110, .lost = 0b0001}}), 0b0001u);
}

TEST(LostRails, ARailThatAPeerHasLostIsNotOurs) { EXPECT_EQ(Lost({{.up = 0b1011, .lost = 0b0100}, {.up = 0b1111}}), 0u); }

TEST(LostRails, APeerThatIsGoneCountsForNothing) {
  EXPECT_EQ(Lost({{.up = 0b1111}, {.up = 0, .lost = 0b1111}}), 0u);
  EXPECT_EQ(Lost({{.up = 0, .lost = 0b1111}}), 0u);
}

TEST(LostRails, ALinkThatWasNeverOpenIsNotLost) { EXPECT_EQ(Lost({{.up = 0b0001}, {.up = 0b0001}}), 0u); }

TEST(FewestRails, CountsThePeerWithTheFewestRails) {
  FewestRails fewest;
  EXPECT_EQ(fewest.lost(), 0u);
  fewest.Add({.up = 0b1111, .lost = 0});
  EXPECT_EQ(fewest.lost(), 0u);
  fewest.Add({.up = 0b1011, .lost = 0b0110});
  EXPECT_EQ(fewest.lost(), 1u) << "a rail that is up by another link is not lost";
  fewest.Add({.up = 0b0001, .lost = 0b1110});
  EXPECT_EQ(fewest.lost(), 3u);
  fewest.Add({.up = 0, .lost = 0b1111});
  EXPECT_EQ(fewest.lost(), 3u) << "a peer that is gone says nothing of rails";
}

}  // namespace
}  // namespace r2cc::net
