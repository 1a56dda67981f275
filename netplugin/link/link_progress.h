// Judges the connections of one link incarnation by the data that they were given. Pure.
//
// A connection stalls when bytes stay unacknowledged although the peer's receive window is open. The peer's kernel acknowledges, not its
// process, so a process that is stopped or busy stalls nothing: either the window closes, or everything that was sent is acknowledged.
// So it is with a queue pair: the peer's device acknowledges what was posted, whatever its process does.
// What a stall means depends on whether the peer answers elsewhere meanwhile; FailureDetector decides that.
#ifndef R2CC_NETPLUGIN_LINK_LINK_PROGRESS_H_
#define R2CC_NETPLUGIN_LINK_LINK_PROGRESS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "base/core/clock.h"
#include "netplugin/link/action.h"

namespace r2cc::net {

// What the kernel or the device says of one connection.
struct PathFacts {
  uint64_t delivered_bytes = 0;  // acknowledged by the peer's kernel since the connection began; of a queue pair requests, not bytes
  bool unacknowledged = false;   // bytes, a connect or a probe of a closed window were sent and are not acknowledged
  bool window_open = true;       // the peer's kernel takes more bytes, or does not answer whether it does
  uint32_t timeouts = 0;         // retransmission timeouts in a row, each followed by a retransmission that nobody has answered
  bool control = false;          // it carries control frames, not chunks
  Nanos silent_most = 0;         // a sound connection reports nothing for at most so long: it reports requests, and they are large
  // The size of the packets that it sends now, and of the largest that is known to have been acknowledged; 0: not known.
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
    Nanos since = 0;         // the longest stall began then; 0: none
    bool confirmed = false;  // a retransmission timeout has passed as well: the bytes did leave this host; and PathFacts::silent_most has
    uint16_t stalled = 0;    // how many connections stall
    uint16_t paths = 0;      // of how many
  };
  const Stall& stall() const { return stall_; }
  // The peer's kernel has all that its bulk connections were given. Its process has to read it, which no other path makes quicker.
  bool bulk_delivered() const;

  // Why the incarnation is given up for a stall. `proving`: it never carried a chunk. Then every connection was greeted a moment ago by
  // small packets, so connections that all stall on large ones say that the size matters. Under load they do not: one sick member of a
  // LAG may have all of them.
  LinkFault Diagnose(bool proving) const;

 private:
  struct Path {
    uint64_t delivered_bytes = 0;
    Nanos since = 0;      // no byte was acknowledged since, although some wait; 0: none waits
    bool stalls = false;  // so for at least one sample
  };
  std::vector<Path> paths_;
  std::vector<PathFacts> facts_;  // of the last sample
  Stall stall_;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_LINK_LINK_PROGRESS_H_
