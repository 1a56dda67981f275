// Defines the life of a link at either end, as (state, event) tables. An empty cell cannot happen: reaching it ends the process.
#ifndef R2CC_NETPLUGIN_LINK_LINK_TABLE_H_
#define R2CC_NETPLUGIN_LINK_LINK_TABLE_H_

#include <cstdint>

namespace r2cc::net {

// ---- the initiator's (sender's) end ----

enum class InitiatorState : uint8_t {
  kIdle,        // no incarnation; waits for its back-off, for its rails, or for a verdict
  kConnecting,  // sockets are being opened and greeted
  kProving,     // a data check is in flight
  kUp,          // carries chunks
};
constexpr int kInitiatorStates = 4;

enum class InitiatorEvent : uint8_t {
  kTry,         // back-off over, and both rails should be tried
  kConnected,   // the greetings of all its sockets are answered
  kProved,      // the acceptor found the data check correct
  kTrouble,     // hard evidence against the incarnation, or silence
  kPeerFenced,  // the acceptor ended the incarnation
};
constexpr int kInitiatorEvents = 5;

enum class InitiatorAction : uint8_t {
  kNone,
  kConnect,  // next incarnation: open its sockets
  kProve,    // send the data check
  kStart,    // carry chunks
  kBackOff,  // close the sockets: no chunk was in flight on it
  kFence,    // close the sockets, then ask the acceptor what arrived
  kReclaim,  // close the sockets: the acceptor has reported what arrived
};

struct InitiatorStep {
  bool possible = false;
  InitiatorState next = InitiatorState::kIdle;
  InitiatorAction action = InitiatorAction::kNone;
};

InitiatorStep Next(InitiatorState state, InitiatorEvent event);

// ---- the acceptor's (receiver's) end ----

enum class AcceptorState : uint8_t {
  kDown,    // no incarnation: no part of the link touches a buffer
  kUp,      // an incarnation may deliver
  kEnding,  // it may deliver no more, and the transport has not confirmed the close yet
};
constexpr int kAcceptorStates = 3;

enum class AcceptorEvent : uint8_t {
  kGreeted,    // the initiator offers a newer incarnation than any before
  kFence,      // the initiator asks to end an incarnation
  kTrouble,    // evidence of the acceptor's own
  kClosed,     // the transport: no part of the ending incarnation touches a buffer any more
  kNotClosed,  // the transport: it cannot promise that
};
constexpr int kAcceptorEvents = 5;

enum class AcceptorAction : uint8_t {
  kNone,
  kBegin,           // remember the incarnation
  kAnswer,          // it has ended already: answer FENCED (again)
  kClose,           // close it: the initiator gave it up
  kCloseAndOwe,     // close it, and owe the answer to the channel that asked
  kCloseAndReport,  // close it, and owe FENCED on all channels until the initiator confirms
  kOwe,             // owe the answer to this channel, too
  kFinish,          // drop its claims, then send what is owed
  kWithhold,        // send nothing: a chunk that is replayed could be overwritten
};

struct AcceptorStep {
  bool possible = false;
  AcceptorState next = AcceptorState::kDown;
  AcceptorAction action = AcceptorAction::kNone;
};

AcceptorStep Next(AcceptorState state, AcceptorEvent event);

const char* Name(InitiatorState state);
const char* Name(AcceptorState state);

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_LINK_LINK_TABLE_H_
