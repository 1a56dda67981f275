// Judges the connections of one link incarnation by their progress on the data that they were given. Pure.
//
// A connection stalls when bytes stay unacknowledged although the peer's receive window is open. The peer's kernel acknowledges, not its
// process, so a process that is stopped or busy stalls nothing: either the window closes, or everything that was sent is acknowledged. A
// queue pair behaves the same: the peer's device acknowledges what was posted, whatever its process does. The meaning of a stall depends on
// whether the peer answers elsewhere meanwhile; FailureDetector decides that.
#ifndef R2CC_NETPLUGIN_LINK_LINK_PROGRESS_H_
#define R2CC_NETPLUGIN_LINK_LINK_PROGRESS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "base/core/clock.h"
#include "netplugin/link/action.h"

namespace r2cc::net {

// What the kernel or the device reports of one connection.
struct PathFacts {
  uint64_t delivered_bytes = 0;  // acknowledged by the peer's kernel since the connection began; for a queue pair requests, not bytes
  bool unacknowledged = false;   // bytes, a connect or a probe of a closed window were sent and are not acknowledged
  bool window_open = true;       // the peer's kernel takes more bytes, or does not answer whether it does
  uint32_t timeouts = 0;         // retransmission timeouts in a row, each followed by a retransmission without an answer
  bool control = false;          // it carries control frames, not chunks
  Nanos silent_most = 0;         // a sound connection is silent for at most this: a queue pair reports requests, and they are large
  // The size of the packets that it sends now, and of the largest that is known to be acknowledged; 0: not known.
  uint32_t packet_bytes = 0;
  uint32_t passed_packet_bytes = 0;
};

class LinkProgress {
 public:
  // A new incarnation: nothing is known of its connections.
  void Begin() { *this = LinkProgress(); }

  // The connections of the incarnation, in the same order each time.
  void Sample(std::span<const PathFacts> facts, Nanos now);

  // The connections that make no progress.
  struct Stall {
    Nanos since = 0;         // since when the longest stall lasts; 0: none
    bool confirmed = false;  // a retransmission timeout has passed, so the bytes left this host; PathFacts::silent_most has passed, too
    uint16_t stalled = 0;    // how many connections stall
    uint16_t paths = 0;      // how many connections there are
  };
  const Stall& stall() const { return stall_; }
  // The peer's kernel has all that the bulk connections were given. The peer's process has to read it, which no other path makes quicker.
  bool bulk_delivered() const;

  // Why the incarnation is given up for a stall. `proving`: it never carried a chunk. Then small packets have just greeted every
  // connection, so if all connections stall on large ones, the size is the cause. Under load that does not follow: all of them may use one
  // sick member of a LAG.
  LinkFault Diagnose(bool proving) const;

 private:
  struct Path {
    uint64_t delivered_bytes = 0;
    Nanos since = 0;      // since when no byte was acknowledged although some wait; 0: none waits
    bool stalls = false;  // true for at least one sample
  };
  std::vector<Path> paths_;
  std::vector<PathFacts> facts_;  // of the last sample
  Stall stall_;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_LINK_LINK_PROGRESS_H_
