// What goes on inside simulated processes, told to whoever checks, counts or disturbs it.
#ifndef R2CC_TESTS_SIM_TAP_H_
#define R2CC_TESTS_SIM_TAP_H_

#include <cstddef>
#include <string>

#include "netplugin/link/action.h"
#include "netplugin/link/link_table.h"

namespace r2cc::sim {

// One incarnation of one link.
struct Carrying {
  int receiver = 0;
  int sender = 0;
  net::LinkId link = 0;
  net::Incarnation incarnation = 0;
};

enum class Moment {
  kLinkOpening,   // the initiator begins to connect
  kLinkProving,   // its data check leaves
  kLinkUp,        // it carries chunks from now on
  kLinkFencing,   // the initiator closed a link that carried chunks
  kLinkReplays,   // the acceptor's answer is here, lost chunks travel again
  kAcceptorEnds,  // the acceptor closed a link
  kRecvClosing,   // a receiver is about to close a flow
};
constexpr int kMoments = 7;

// States worth reaching: a sweep that never does proves little.
enum class Situation {
  kStaged,         // a small message arrived before its buffer was posted
  kHalfRead,       // a link ended with a chunk half-read
  kReplayed,       // a chunk left a second time
  kReplayedTwice,  // and a third: its replay was lost as well
  kSpread,         // one message came through several links
  kCrossRailLink,  // a cross-rail link carried chunks
  kFenceInFence,   // a link was given up while the fence of another was not answered yet
  kReturned,       // a link that was given up carries again
  kKeyAgain,       // a chunk was placed by a key of a device that had been lost
};
constexpr int kSituations = static_cast<int>(Situation::kKeyAgain) + 1;

class Tap {
 public:
  virtual ~Tap() = default;
  // A process's kernel copied payload from a buffer, or is about to copy it into one.
  virtual void Reads(int /*host*/, const std::byte* /*from*/, size_t /*bytes*/) {}
  // A device reads it: for the first time, or to send it again.
  virtual void DeviceReads(int /*host*/, const std::byte* /*from*/) {}
  virtual void Writes(int /*host*/, const std::byte* /*to*/, size_t /*bytes*/) {}
  // A device is about to place bytes through the incarnation.
  virtual void Placing(const Carrying& /*who*/, std::byte* /*to*/, size_t /*bytes*/) {}
  // A device says that it has placed a chunk. False: the contract is broken already, and its owner, who would end the process, is not told.
  virtual bool ChunkPlaced(const Carrying& /*who*/, const net::Chunk& /*header*/) { return true; }
  // Its queue pair has the number and the sequence numbers of the link's last one: what is left of that may be taken for its own.
  // All keys of a rail are void although no call of its device has failed, or was late, and it was never lost.
  virtual void KeysRevoked(int /*host*/, int /*rail*/) {}
  virtual void SuccessorIsTheSame(const Carrying& /*who*/) {}
  // What came through it breaks the protocol, although its sender is honest.
  virtual void Garbled(const Carrying& /*who*/) {}
  virtual void ChunkSent(const Carrying& /*who*/, const net::Chunk& /*chunk*/) {}
  virtual void ChunkBegun(const Carrying& /*who*/, const net::Chunk& /*header*/, const std::byte* /*destination*/) {}
  virtual void ChunkFinished(const Carrying& /*who*/, const net::Chunk& /*header*/) {}
  // A device is about to place a chunk by a key. `right`: that is registered on its rail, for where the chunk goes; and the sender's own
  // memory was where it was read. `again`: since the device has come back.
  virtual void Keyed(const Carrying& /*who*/, const net::Chunk& /*header*/, bool /*right*/, bool /*again*/) {}
  virtual void ChunkRefused(const Carrying& /*who*/, const net::Chunk& /*header*/) {}
  // Nothing of it reaches a buffer any more.
  virtual void CarrierEnded(const Carrying& /*who*/) {}
  virtual void Stepped(net::InitiatorState /*state*/, net::InitiatorEvent /*event*/) {}
  virtual void Stepped(net::AcceptorState /*state*/, net::AcceptorEvent /*event*/) {}
  virtual void At(Moment /*moment*/, int /*sender*/, int /*receiver*/, net::LinkId /*link*/) {}
  // A sender's kLinkUp, kLinkFenced or kLinkSlow: what its daemon would be told of its own rail.
  virtual void Recorded(int /*sender*/, int /*receiver*/, int /*rail*/, const net::SessionAction& /*action*/) {}
  virtual void Log(int /*host*/, const std::string& /*line*/) {}
  virtual bool logs() const { return false; }
};

}  // namespace r2cc::sim

#endif  // R2CC_TESTS_SIM_TAP_H_
