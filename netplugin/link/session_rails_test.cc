#include "netplugin/link/session_rails.h"

#include <gtest/gtest.h>

#include <vector>

namespace r2cc::net {
namespace {

const RailInfo kTcpRail{.up = true, .endpoints = {{.transport = TransportKind::kTcp, .bytes = {1}}}};

TEST(SessionRails, RailsWithoutATransportInCommonAreNotJoined) {
  SessionRails rails({SetOf(TransportKind::kTcp), SetOf(TransportKind::kVerbs)});
  rails.SetRemoteRails(std::vector<RailInfo>{kTcpRail});
  EXPECT_TRUE(rails.Joinable({0, 0}));
  EXPECT_FALSE(rails.Joinable({1, 0}));
}

TEST(SessionRails, TheTransportIsChosenWhenThePeersRailsAreFirstKnown) {
  constexpr TransportSet kBoth = SetOf(TransportKind::kTcp) | SetOf(TransportKind::kVerbs);
  SessionRails rails({kBoth, SetOf(TransportKind::kTcp)});
  rails.SetRemoteRails(std::vector<RailInfo>{kTcpRail});
  EXPECT_FALSE(rails.any_placed_by_sender());
  RailInfo more = kTcpRail;
  more.endpoints.push_back({.transport = TransportKind::kVerbs, .bytes = {1}});
  rails.SetRemoteRails(std::vector<RailInfo>{more});
  EXPECT_EQ(rails.TransportOf({0, 0}), TransportKind::kTcp);
  SessionRails others({SetOf(TransportKind::kTcp), kBoth});
  others.SetRemoteRails(std::vector<RailInfo>{more});
  EXPECT_EQ(others.TransportOf({0, 0}), TransportKind::kTcp);
  EXPECT_EQ(others.TransportOf({1, 0}), TransportKind::kVerbs);
  EXPECT_TRUE(others.any_placed_by_sender());
}

TEST(SessionRails, ARailFoundElsewhereIsNewsIfItIsUp) {
  SessionRails rails({SetOf(TransportKind::kTcp)});
  std::vector<RailInfo> remote(2, kTcpRail);
  rails.SetRemoteRails(remote);
  EXPECT_TRUE(rails.SetRemoteRails(remote).empty());
  remote[1].endpoints[0].bytes = {2};
  EXPECT_EQ(rails.SetRemoteRails(remote), std::vector<uint16_t>{1});
  remote[0].endpoints[0].bytes = {2};
  remote[0].up = false;
  EXPECT_TRUE(rails.SetRemoteRails(remote).empty());
  EXPECT_FALSE(rails.remote_up(0));
}

TEST(SessionRails, AnotherNumberOfRailsChangesNothing) {
  SessionRails rails({SetOf(TransportKind::kTcp)});
  rails.SetRemoteRails(std::vector<RailInfo>(2, kTcpRail));
  for (const size_t count : {0, 1, 3}) {
    RailInfo elsewhere = kTcpRail;
    elsewhere.endpoints[0].bytes = {9};
    EXPECT_TRUE(rails.SetRemoteRails(std::vector<RailInfo>(count, elsewhere)).empty());
    EXPECT_EQ(rails.remote_count(), 2);
  }
}

TEST(SessionRails, CopiesOfAReportAreNoNews) {
  SessionRails rails({SetOf(TransportKind::kTcp)});
  std::vector<RailInfo> remote{kTcpRail};
  rails.SetRemoteRails(remote);
  EXPECT_TRUE(rails.ReportedUp(0, 0));
  EXPECT_FALSE(rails.ReportedUp(0, 4 * kNanosPerMs));
  EXPECT_TRUE(rails.ReportedUp(0, 100 * kNanosPerMs));
  remote[0].endpoints[0].bytes = {2};
  rails.SetRemoteRails(remote);
  EXPECT_TRUE(rails.ReportedUp(0, 101 * kNanosPerMs));
}

TEST(SessionRails, ThePageDecidesWhichRailsWorkAndTheirWeights) {
  SessionRails rails({SetOf(TransportKind::kTcp), SetOf(TransportKind::kTcp)});
  rails.SetRemoteRails(std::vector<RailInfo>(2, kTcpRail));
  EXPECT_TRUE(rails.SetLocalVerdict(0, {.weight_permille = 700}));
  EXPECT_FALSE(rails.SetLocalVerdict(0, {.weight_permille = 700}));
  EXPECT_TRUE(rails.SetRemoteVerdict(1, {.failed = true, .weight_permille = 500}));
  EXPECT_EQ(rails.WeightPermille({0, 0}), 700);
  EXPECT_EQ(rails.WeightPermille({0, 1}), 500);
  EXPECT_EQ(rails.RemoteWorks(false), (std::vector<bool>{true, false}));
  EXPECT_EQ(rails.RemoteWorks(true), (std::vector<bool>{true, true})) << "the last way";
  EXPECT_TRUE(rails.Failed({0, 1}));
  EXPECT_FALSE(rails.Failed({1, 0}));
  EXPECT_TRUE(rails.SetPathBroken({1, 0}, true));
  EXPECT_FALSE(rails.SetPathBroken({1, 0}, true));
  EXPECT_TRUE(rails.Failed({1, 0}));
  EXPECT_TRUE(rails.SetPathBroken({1, 0}, false));
  EXPECT_FALSE(rails.Failed({1, 0}));
  rails.SetLocalUp(1, false);
  EXPECT_EQ(rails.LocalWorks(false), (std::vector<bool>{true, false}));
  EXPECT_TRUE(rails.SetLocalVerdict(0, {.failed = true}));
  EXPECT_EQ(rails.LocalWorks(false), (std::vector<bool>{false, false}));
  EXPECT_EQ(rails.LocalWorks(true), (std::vector<bool>{true, false})) << "a rail that is down leads nowhere";
}

}  // namespace
}  // namespace r2cc::net
