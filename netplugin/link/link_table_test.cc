#include "netplugin/link/link_table.h"

#include <gtest/gtest.h>

namespace r2cc::net {
namespace {

using IS = InitiatorState;
using IE = InitiatorEvent;
using IA = InitiatorAction;

TEST(InitiatorTable, TheWayUp) {
  EXPECT_EQ(Next(IS::kIdle, IE::kTry).action, IA::kConnect);
  EXPECT_EQ(Next(IS::kConnecting, IE::kConnected).action, IA::kProve);
  EXPECT_EQ(Next(IS::kProving, IE::kProved).action, IA::kStart);
  EXPECT_EQ(Next(IS::kProving, IE::kProved).next, IS::kUp);
}

// Only a link that has carried chunks is fenced; and no trouble leaves a link in use.
TEST(InitiatorTable, TroubleEndsTheIncarnationInEveryState) {
  for (int s = 0; s < kInitiatorStates; ++s) {
    const auto state = static_cast<IS>(s);
    for (const IE event : {IE::kTrouble, IE::kPeerFenced}) {
      const InitiatorStep step = Next(state, event);
      EXPECT_EQ(step.next, IS::kIdle) << Name(state);
      const IA expected = state == IS::kIdle      ? IA::kNone
                          : state != IS::kUp      ? IA::kBackOff
                          : event == IE::kTrouble ? IA::kFence
                                                  : IA::kReclaim;
      EXPECT_EQ(step.action, expected) << Name(state);
    }
  }
}

TEST(InitiatorTableDeathTest, CellsThatCannotHappenEndTheProcess) {
  EXPECT_DEATH(Next(IS::kUp, IE::kTry), "invariant");
  EXPECT_DEATH(Next(IS::kUp, IE::kConnected), "invariant");
  EXPECT_DEATH(Next(IS::kIdle, IE::kProved), "invariant");
  EXPECT_DEATH(Next(IS::kIdle, IE::kConnected), "invariant");
  EXPECT_DEATH(Next(IS::kConnecting, IE::kProved), "invariant");
  EXPECT_DEATH(Next(IS::kConnecting, IE::kTry), "invariant");
  EXPECT_DEATH(Next(IS::kProving, IE::kTry), "invariant");
  EXPECT_DEATH(Next(IS::kProving, IE::kConnected), "invariant");
}

TEST(AcceptorTable, EveryCell) {
  using AS = AcceptorState;
  using AE = AcceptorEvent;
  using AA = AcceptorAction;
  EXPECT_EQ(Next(AS::kDown, AE::kGreeted).action, AA::kBegin);
  EXPECT_EQ(Next(AS::kDown, AE::kFence).action, AA::kAnswer) << "a fence asked for again is answered again";
  EXPECT_EQ(Next(AS::kDown, AE::kTrouble).action, AA::kNone);
  EXPECT_EQ(Next(AS::kUp, AE::kGreeted).action, AA::kEndAndBegin);
  EXPECT_EQ(Next(AS::kUp, AE::kFence).action, AA::kEndAndAnswer);
  EXPECT_EQ(Next(AS::kUp, AE::kTrouble).action, AA::kEndAndTell);
  for (const AS state : {AS::kDown, AS::kUp}) {
    EXPECT_EQ(Next(state, AE::kGreeted).next, AS::kUp);
    EXPECT_EQ(Next(state, AE::kFence).next, AS::kDown);
    EXPECT_EQ(Next(state, AE::kTrouble).next, AS::kDown);
  }
}

}  // namespace
}  // namespace r2cc::net
