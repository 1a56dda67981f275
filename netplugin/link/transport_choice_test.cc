#include "netplugin/link/transport_choice.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace r2cc::net
