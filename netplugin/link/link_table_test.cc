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
  struct Cell {
    AS state;
    AE event;
    AS next;
    AA action;
  };
  for (const Cell& cell : {
           Cell{AS::kDown, AE::kGreeted, AS::kUp, AA::kBegin},
           Cell{AS::kDown, AE::kFence, AS::kDown, AA::kAnswer},  // asked for again, answered again
           Cell{AS::kDown, AE::kTrouble, AS::kDown, AA::kNone},
           Cell{AS::kUp, AE::kGreeted, AS::kEnding, AA::kClose},
           Cell{AS::kUp, AE::kFence, AS::kEnding, AA::kCloseAndOwe},
           Cell{AS::kUp, AE::kTrouble, AS::kEnding, AA::kCloseAndReport},
           Cell{AS::kEnding, AE::kGreeted, AS::kEnding, AA::kNone},
           Cell{AS::kEnding, AE::kFence, AS::kEnding, AA::kOwe},
           Cell{AS::kEnding, AE::kTrouble, AS::kEnding, AA::kNone},
           Cell{AS::kEnding, AE::kClosed, AS::kDown, AA::kFinish},
           Cell{AS::kEnding, AE::kNotClosed, AS::kEnding, AA::kWithhold},
       }) {
    EXPECT_EQ(Next(cell.state, cell.event).next, cell.next) << Name(cell.state) << " x " << static_cast<int>(cell.event);
    EXPECT_EQ(Next(cell.state, cell.event).action, cell.action) << Name(cell.state) << " x " << static_cast<int>(cell.event);
  }
}

// An incarnation that is up must be closed before another begins and before anything is answered.
TEST(AcceptorTableDeathTest, OnlyAnEndingLinkIsClosed) {
  for (const AcceptorState state : {AcceptorState::kDown, AcceptorState::kUp}) {
    EXPECT_DEATH(Next(state, AcceptorEvent::kClosed), "invariant");
    EXPECT_DEATH(Next(state, AcceptorEvent::kNotClosed), "invariant");
  }
}

}  // namespace
}  // namespace r2cc::net
