#include "daemon/peers/peer_texts.h"

#include <gtest/gtest.h>

#include "daemon/core/convert.h"

namespace r2cc::daemon {
namespace {

std::string Judged(uint32_t protocol, uint32_t newest) {
  v1::NodeView view;
  view.set_node("n1");
  view.set_release("9.9");
  view.set_protocol(protocol);
  view.set_protocol_newest(newest);
  return ForeignProtocol(view);
}

TEST(ForeignProtocol, RangesThatMeetUnderstandEachOther) {
  for (uint32_t protocol = kPeerProtocolLeast; protocol <= kPeerProtocol; ++protocol) EXPECT_EQ(Judged(protocol, 0), "") << protocol;
  EXPECT_EQ(Judged(kPeerProtocolLeast, kPeerProtocol), "");
  EXPECT_EQ(Judged(kPeerProtocol, kPeerProtocol + 1), "") << "the next release's";
  EXPECT_EQ(Judged(kPeerProtocolLeast - 1, kPeerProtocolLeast), "");
}

TEST(ForeignProtocol, OthersAreNamed) {
  const std::string way_out = ", this one 3: install releases next to each other, and one on all nodes in the end";
  EXPECT_EQ(Judged(2, 0), "the daemon of n1 (release 9.9) speaks protocol 2" + way_out) << "release 0.1.0's";
  EXPECT_EQ(Judged(4, 5), "the daemon of n1 (release 9.9) speaks protocol 4 to 5" + way_out);
  EXPECT_NE(Judged(0, 0), "") << "it sends nothing";
  EXPECT_NE(Judged(kPeerProtocol + 1, 1), "") << "a range that is none";
}

TEST(Where, NamesTheWayIfItIsAnother) {
  EXPECT_EQ(Where("h1:7460", {0, "h1:7460"}), "h1:7460");
  EXPECT_EQ(Where("h1:7460", {0, "the store"}), "h1:7460 (heard from the store)");
}

}  // namespace
}  // namespace r2cc::daemon
