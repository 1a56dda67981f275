// Defines what a session asks of the transport. Sessions do no I/O: events go in through their methods, actions come out of TakeActions().
//
// The contract of the code that carries actions out. Fence before replay rests on it.
// - Actions are carried out in their order, and a batch to its end before the next is taken. The result of an action goes into the session
//   at once; the actions that follow from it come with the next batch.
// - A close ends an incarnation. Its answer is LinkClosed(link, incarnation, ok), at once or after any number of other events. `ok`: no
//   part of the incarnation reads or writes a buffer any more, and never will. Not ok: the transport cannot promise that; a later ok may
//   follow. Between kCloseLink and the answer, nothing of that incarnation reaches the session but the answer: no frame, no trouble, no
//   chunk.
// - FENCED leaves only after ok, with what has arrived by then. So if a link could not be closed, its chunks, which may still be written,
//   are never replayed into the same buffer: the sender's flows on it fail at the deadline instead.
#ifndef R2CC_NETPLUGIN_LINK_ACTION_H_
#define R2CC_NETPLUGIN_LINK_ACTION_H_

#include <string>
#include <vector>

#include "base/core/clock.h"
#include "netplugin/flow/types.h"
#include "netplugin/link/frame.h"
#include "plan/page/ring.h"

namespace r2cc::net {

// A channel is named by its link; the out-of-band channel has a name of its own.
using ChannelId = int;
constexpr ChannelId kOobChannel = -1;

// The result of an attempt to connect to the peer's out-of-band address.
enum class ProbeResult {
  kRefused,  // its kernel reports that no process listens there: the process is gone
  kAnswers,  // its kernel answers, whatever its process does; only probes return it
  kRuns,     // a process there accepts connections and hangs up: it is not stopped; only probes return it
  kSilent,   // no answer, or the connection broke: no verdict
};

// The fault of a link.
struct LinkFault {
  plan::EvidenceCause cause = plan::EvidenceCause::kNone;
  uint64_t detail = 0;  // see EvidenceCause

  friend bool operator==(const LinkFault&, const LinkFault&) = default;
};

// A link given up, as the daemon and the job's summary get it.
struct FenceReport {
  plan::EvidenceCause cause = plan::EvidenceCause::kNone;
  uint64_t detail = 0;  // see EvidenceCause
  uint64_t replayed_bytes = 0;
  Nanos duration = 0;  // kLinkFenced: until the lost chunks could travel again; kLinkPassed: the longest gap in a flow's progress
  Nanos since = 0;     // when it was given up
  Nanos until = 0;     // kLinkPassed: the end of that gap
};

// Why a link carries nothing, for the error when a session gives up.
struct LinkFate {
  uint16_t local_rail = 0;
  uint16_t remote_rail = 0;
  plan::EvidenceCause cause = plan::EvidenceCause::kNone;  // kNone: it never carried anything
  Nanos since = 0;
};

struct SessionAction {
  enum class Kind {
    kSend,         // `frame` on `channel`
    kOpenOob,      // connect and greet the out-of-band channel; answer with OobUp() or OobDown(), before that perhaps with OobUngreeted()
    kCloseOob,     // end the out-of-band connection: the peer broke the protocol on it
    kOpenLink,     // connect and greet all sockets of `link`'s `incarnation`; answer with LinkConnected() or LinkTrouble()
    kProveLink,    // send the data check on every bulk socket
    kCloseLink,    // begin to end it; unread and unsent bytes are lost; an acceptor answers with LinkClosed()
    kProbePeer,    // does any process listen at the peer's out-of-band address? the last frame came at `last_received`; answer with
                   // PeerProbed()
    kLinkUp,       // for the record
    kLinkLost,     // for the record: an incarnation that carried data is given up; `report` has the reason
    kLinkFenced,   // for the record: the peer has ended it, too; `report`
    kLinkPassed,   // for the record: the flows that it held up go on; `report`: how long they waited, `flow`: which waited longest
    kFailed,       // for the record: operations of the job fail; `number`: a plan::Failure
    kLinkStalled,  // data on `link` stays unacknowledged: do not trust the peer's link to us on the same rails either
    kLinkRefused,  // for the record: an incarnation ended before it carried data; `report` has the reason
    kLinkSlow,     // for the record: `number` permille of what the others move; 1000: equal to them again. Reported about once a second
                   // while it lasts, then with `again`
    kFlowOpened,   // acceptor: `flow` wants listener `number`; answer with AcceptFlow() or RefuseFlow()
    kFlush,        // acceptor: make the data that `link` brought for `flush` visible to the GPU; answer with Flushed(), or end the link
    kWarn,         // one line for the log
  };
  Kind kind;
  ChannelId channel = kOobChannel;
  Frame frame;
  LinkId link = 0;
  Incarnation incarnation = 0;
  FlowId flow = 0;
  uint64_t number = 0;
  bool again = false;
  Nanos last_received = 0;
  FenceReport report;
  FlushName flush;
  Buffer buffer;  // of the message that is flushed
  std::string text;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_LINK_ACTION_H_
