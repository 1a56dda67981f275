#include "netplugin/link/transport_choice.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace r2cc::net {
namespace {

constexpr TransportSet kTcpAlone = SetOf(TransportKind::kTcp);
constexpr TransportSet kVerbsAlone = SetOf(TransportKind::kVerbs);
constexpr TransportSet kBoth = kTcpAlone | kVerbsAlone;

TEST(TransportChoice, RailsAreJoinedByTheBestThatBothHave) {
  EXPECT_EQ(ChooseTransport(kBoth, kBoth), TransportKind::kVerbs);
  EXPECT_EQ(ChooseTransport(kBoth, kTcpAlone), TransportKind::kTcp);
  EXPECT_EQ(ChooseTransport(kVerbsAlone, kBoth), TransportKind::kVerbs);
  EXPECT_EQ(ChooseTransport(kTcpAlone, kTcpAlone), TransportKind::kTcp);
}

TEST(TransportChoice, UnlikeRailsCannotBeJoined) {
  EXPECT_EQ(ChooseTransport(kVerbsAlone, kTcpAlone), std::nullopt);
  EXPECT_EQ(ChooseTransport(0, kBoth), std::nullopt);
}

TEST(TransportChoice, ARailHasWhatItsEndpointsName) {
  const RailInfo rail{.endpoints = {{TransportKind::kTcp, {}}, {TransportKind::kVerbs, {1}}}};
  EXPECT_EQ(TransportsOf(rail), kBoth);
  EXPECT_EQ(TransportsOf(RailInfo{}), 0);
}

TEST(TransportChoice, TheErrorOfEndsWithoutACommonTransportHasAdvice) {
  const std::vector<RailInfo> tcp = {{.endpoints = {{TransportKind::kTcp, {1}}}}, {.endpoints = {{TransportKind::kTcp, {}}}}};
  const std::vector<RailInfo> verbs = {{.endpoints = {{TransportKind::kVerbs, {1}}}}};
  const std::vector<RailInfo> both = {verbs[0], tcp[0]};
  EXPECT_EQ(NothingInCommon(verbs, tcp, "b"),
            "R2CC: no rail can reach peer b: its rails go by TCP alone, ours by RDMA alone; set R2CC_TRANSPORT to the same at both ends");
  EXPECT_EQ(NothingInCommon(tcp, verbs, "a"),
            "R2CC: no rail can reach peer a: its rails go by RDMA alone, ours by TCP alone; set R2CC_TRANSPORT to the same at both ends");
  for (const auto& [one, other] : {std::pair(both, tcp), {tcp, both}, {verbs, both}, {tcp, tcp}, {verbs, {RailInfo{}}}})
    EXPECT_EQ(NothingInCommon(one, other, "b"), "");
}

TEST(TransportChoice, VerbsOnAllRailsOfBothOrNot) {
  const RailInfo both{"a", true, {{TransportKind::kTcp, {}}, {TransportKind::kVerbs, {}}}}, verbs{"b", true, {{TransportKind::kVerbs, {}}}};
  const RailInfo tcp{"c", true, {{TransportKind::kTcp, {}}}};
  const std::vector<RailInfo> rdma = {both, verbs}, mixed = {both, tcp};
  EXPECT_TRUE(AllByVerbs(rdma, rdma));
  EXPECT_FALSE(AllByVerbs(rdma, mixed));
  EXPECT_FALSE(AllByVerbs(mixed, rdma));
}

}  // namespace
}  // namespace r2cc::net
