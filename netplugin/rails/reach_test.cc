#include "netplugin/rails/reach.h"

#include <gtest/gtest.h>

#include <vector>

#include "netplugin/flow/tuning.h"

namespace r2cc::net {
namespace {

using Missing = ReachWatch::Missing;
using Ends = std::vector<RailEnd>;

Ends V4(int node) {
  Ends ends;
  for (int rail = 0; rail < 2; ++rail) {
    const std::string number = std::to_string(rail);
    ends.push_back({"rail" + number, "10.10." + number + "." + std::to_string(node + 1), static_cast<uint16_t>(40000 + rail), "IPv4"});
  }
  return ends;
}

Ends V6() { return {{"rail0", "fd00::2", 40010, "IPv6"}, {"rail1", "fd01::2", 40011, "IPv6"}}; }

TEST(UnlikeFamilies, NoRailAtAll) {
  EXPECT_EQ(
      UnlikeFamilies(V4(0), V6(), "n1"),
      "R2CC: no rail can reach peer n1: rail0 is IPv4 (10.10.0.1) and rail0 there IPv6 (fd00::2), rail1 is IPv4 (10.10.1.1) and rail1 "
      "there IPv6 (fd01::2); give both ends addresses of one family, or name such addresses in R2CC_RAILS");
}

TEST(UnlikeFamilies, Some) {
  Ends peers = V4(1);
  peers[1] = V6()[1];
  EXPECT_EQ(UnlikeFamilies(V4(0), peers, "n1").find("R2CC: not all rails can reach peer n1: rail1 is IPv4"), 0u);
}

TEST(UnlikeFamilies, EqualOrUnknownFamiliesAreAccepted) {
  EXPECT_EQ(UnlikeFamilies(V4(0), V4(1), "n1"), "");
  EXPECT_EQ(UnlikeFamilies(V6(), V6(), "n1"), "");
  Ends unknown = V6();
  unknown[0].family = unknown[1].family = "";
  EXPECT_EQ(UnlikeFamilies(V4(0), unknown, "n1"), "") << "RDMA, or an address that is still to come";
  EXPECT_EQ(UnlikeFamilies(V4(0), {}, "n1"), "");
}

TEST(TriedRails, PairsRailsOfTheSameNumber) {
  EXPECT_EQ(TriedRails(V4(0), V4(1)), "rail0 10.10.0.1 to 10.10.0.2:40000, rail1 10.10.1.1 to 10.10.1.2:40001");
  EXPECT_EQ(TriedRails(V6(), V6()), "rail0 fd00::2 to [fd00::2]:40010, rail1 fd01::2 to [fd01::2]:40011");
  EXPECT_EQ(TriedRails(V4(0), {}), "");
  EXPECT_TRUE(TriedRails(Ends(6, V4(0)[0]), Ends(6, V4(1)[0])).ends_with(", rail0 10.10.0.1 to 10.10.0.2:40000, ..."));
}

TEST(ReachWatch, OnceForEach) {
  ReachWatch watch;
  const Nanos began = 5 * kNanosPerSecond, early = tuning::kReachEarly;
  EXPECT_EQ(watch.Tick(false, false, false, began), std::nullopt);
  EXPECT_EQ(watch.Tick(false, false, false, began + early - 1), std::nullopt);
  EXPECT_EQ(watch.Tick(false, false, false, began + early), Missing::kAnswer);
  EXPECT_EQ(watch.Tick(false, false, false, began + 2 * early), std::nullopt);
  EXPECT_EQ(watch.Tick(true, true, false, began + 3 * early), std::nullopt);
  EXPECT_EQ(watch.Tick(true, true, false, began + 4 * early), Missing::kRail);
  EXPECT_EQ(watch.Tick(true, true, false, began + 5 * early), std::nullopt);
  EXPECT_FALSE(watch.was_linked());
}

TEST(ReachWatch, AStoppedPeerAndALostRailAreOtherMatters) {
  ReachWatch watch;
  const Nanos early = tuning::kReachEarly;
  EXPECT_EQ(watch.Tick(true, false, false, 1), std::nullopt);
  EXPECT_EQ(watch.Tick(true, false, false, 1 + 2 * early), std::nullopt) << "its kernel answers";
  EXPECT_EQ(watch.Tick(true, true, true, 1 + 3 * early), std::nullopt);
  EXPECT_EQ(watch.Tick(true, true, false, 1 + 9 * early), std::nullopt);
  EXPECT_TRUE(watch.was_linked());
}

}  // namespace
}  // namespace r2cc::net
