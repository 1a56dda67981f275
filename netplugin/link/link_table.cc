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

constexpr AcceptorStep kNever{};

// Rows: states. Columns: kGreeted, kFence, kTrouble, kClosed, kNotClosed.
constexpr AcceptorStep kAcceptor[kAcceptorStates][kAcceptorEvents] = {
    // kDown
    {{true, AS::kUp, AA::kBegin}, {true, AS::kDown, AA::kAnswer}, {true, AS::kDown, AA::kNone}, kNever, kNever},
    // kUp
    {{true, AS::kEnding, AA::kClose}, {true, AS::kEnding, AA::kCloseAndOwe}, {true, AS::kEnding, AA::kCloseAndReport}, kNever, kNever},
    // kEnding: the transport keeps what was offered meanwhile. A close that failed may still succeed.
    {{true, AS::kEnding, AA::kNone},
     {true, AS::kEnding, AA::kOwe},
     {true, AS::kEnding, AA::kNone},
     {true, AS::kDown, AA::kFinish},
     {true, AS::kEnding, AA::kWithhold}},
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

const char* Name(AcceptorState state) {
  switch (state) {
    case AS::kDown: return "down";
    case AS::kUp: return "up";
    case AS::kEnding: return "ending";
  }
  return "unknown";
}

}  // namespace r2cc::net
