#include "netplugin/link/link_table.h"

#include "base/core/check.h"

namespace r2cc::net {
namespace {

using IS = InitiatorState;
using IA = InitiatorAction;
constexpr InitiatorStep kImpossible{};

// Rows: states. Columns: kTry, kConnected, kProved, kTrouble, kPeerFenced.
constexpr InitiatorStep kInitiator[kInitiatorStates][kInitiatorEvents] = {
    // kIdle: a late word about an earlier incarnation changes nothing.
    {{true, IS::kConnecting, IA::kConnect}, kImpossible, kImpossible, {true, IS::kIdle, IA::kNone}, {true, IS::kIdle, IA::kNone}},
    // kConnecting
    {kImpossible, {true, IS::kProving, IA::kProve}, kImpossible, {true, IS::kIdle, IA::kBackOff}, {true, IS::kIdle, IA::kBackOff}},
    // kProving
    {kImpossible, kImpossible, {true, IS::kUp, IA::kStart}, {true, IS::kIdle, IA::kBackOff}, {true, IS::kIdle, IA::kBackOff}},
    // kUp
    {kImpossible, kImpossible, kImpossible, {true, IS::kIdle, IA::kFence}, {true, IS::kIdle, IA::kReclaim}},
};

using AS = AcceptorState;
using AA = AcceptorAction;

// Rows: states. Columns: kGreeted, kFence, kTrouble.
constexpr AcceptorStep kAcceptor[kAcceptorStates][kAcceptorEvents] = {
    // kDown
    {{true, AS::kUp, AA::kBegin}, {true, AS::kDown, AA::kAnswer}, {true, AS::kDown, AA::kNone}},
    // kUp
    {{true, AS::kUp, AA::kEndAndBegin}, {true, AS::kDown, AA::kEndAndAnswer}, {true, AS::kDown, AA::kEndAndTell}},
};

}  // namespace

InitiatorStep Next(InitiatorState state, InitiatorEvent event) {
  const InitiatorStep step = kInitiator[static_cast<int>(state)][static_cast<int>(event)];
  R2CC_CHECK(step.possible);
  return step;
}

AcceptorStep Next(AcceptorState state, AcceptorEvent event) {
  const AcceptorStep step = kAcceptor[static_cast<int>(state)][static_cast<int>(event)];
  R2CC_CHECK(step.possible);
  return step;
}

const char* Name(InitiatorState state) {
  switch (state) {
    case IS::kIdle: return "idle";
    case IS::kConnecting: return "connecting";
    case IS::kProving: return "proving";
    case IS::kUp: return "up";
  }
  return "unknown";
}

}  // namespace r2cc::net
