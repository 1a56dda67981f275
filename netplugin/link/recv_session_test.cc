// What a RecvSession says of its flows. session_test has both ends.

#include "netplugin/link/recv_session.h"

#include <gtest/gtest.h>

namespace r2cc::net {
namespace {

constexpr FlowId kFlow = 1;
constexpr Incarnation kFirst = 1;

struct RecvSessionTest : testing::Test {
  RecvSessionTest() {
    session.OobUp(0);
    session.Receive(kOobLane, Frame{.type = FrameType::kFlowOpen, .flow = kFlow}, 0);
    session.AcceptFlow(kFlow, 0);
    EXPECT_TRUE(session.Greet(0, kFirst, 0, 0, 0));
  }
  RecvSession session{{.peer = "peer"}, 0};
};

TEST_F(RecvSessionTest, AnEagerMessageLargerThanABufferPostedWhileItArrivesEndsItsFlow) {
  const Chunk chunk{kFlow, 0, 3, 128, 0, nullptr, 3, true};
  std::byte* to = nullptr;
  ASSERT_TRUE(session.Begin(0, kFirst, chunk, &to));
  ASSERT_NE(to, nullptr);
  char buffer[2];
  session.Post(kFlow, buffer, sizeof(buffer), 0);
  EXPECT_EQ(session.error(kFlow), "");
  EXPECT_FALSE(session.Finish(0, kFirst, chunk));
  EXPECT_EQ(session.error(kFlow), "R2CC: a message of peer peer is larger than the buffer posted for it");
}

}  // namespace
}  // namespace r2cc::net
