// What a session asks of the transport. Sessions do no I/O: events go in through their methods, actions come out of TakeActions().
//
// The contract of whoever carries actions out, on which fence before replay rests:
// - Actions are carried out in the order in which they stand, and a batch to its end before the next is taken. What comes of an action
//   goes into the session at once; the actions that follow from it come with the next batch.
// - A close ends an incarnation. Its answer is LinkClosed(link, incarnation, ok), at once or later, from any number of other events.
//   `ok`: nothing of the incarnation reads or writes a buffer any more, and never will. Not ok: that cannot be promised; a later ok may
//   follow. Between kCloseLink and the answer nothing of that incarnation reaches the session but the answer: no frame, no trouble, no
//   chunk.
// - FENCED leaves only after ok, with what has arrived by then. So chunks that a link which could not be closed may still write are never
//   replayed into the same buffer: the sender's flows on it fail at the deadline instead.
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

// What became of an attempt to connect to the peer's out-of-band address.
enum class ProbeResult {
  kRefused,  // its kernel says that nobody listens there: the process is gone
  kAnswers,  // its kernel answers, whatever its process does: of probes alone
  kSilent,   // nobody answers, or the connection broke: no verdict
};

// What is wrong with a link.
struct LinkFault {
  plan::EvidenceCause cause = plan::EvidenceCause::kNone;
  uint64_t detail = 0;  // see EvidenceCause

  friend bool operator==(const LinkFault&, const LinkFault&) = default;
};

// A link given up, as the daemon and the summary hear of it.
struct FenceReport {
  plan::EvidenceCause cause = plan::EvidenceCause::kNone;
  uint64_t detail = 0;  // see EvidenceCause
  uint64_t replayed_bytes = 0;
  Nanos duration = 0;  // kLinkFenced: until the lost chunks could travel again; kLinkPassed: the longest gap in a flow's progress
  Nanos since = 0;     // when it was given up
  Nanos until = 0;     // kLinkPassed: the end of that gap
};

// Why a link carries nothing, where a session gives up.
struct LinkFate {
  uint16_t local_rail = 0;
  uint16_t remote_rail = 0;
  plan::EvidenceCause cause = plan::EvidenceCause::kNone;  // kNone: it never has
  Nanos since = 0;
};

struct Action {
  enum class Kind {
    kSend,         // `frame` on `channel`
    kOpenOob,      // connect and greet the out-of-band channel; answer with OobUp() or OobDown(), before that perhaps with OobUngreeted()
    kCloseOob,     // end the out-of-band connection: the peer broke the protocol on it
    kOpenLink,     // connect and greet all sockets of `link`'s `incarnation`; answer with LinkConnected() or LinkTrouble()
    kProveLink,    // send the data check on every bulk socket
    kCloseLink,    // begin to end it, unread and unsent bytes lost; an acceptor's is answered with LinkClosed()
    kProbePeer,    // is anybody at the peer's out-of-band address? its process was `heard` last then; answer with PeerProbed()
    kLinkUp,       // for the record
    kLinkLost,     // for the record: an incarnation that carried data is given up; `report`: why
    kLinkFenced,   // for the record: the peer has ended it, too; `report`
    kLinkPassed,   // for the record: what it held up goes on; `report`: for how long it waited, `flow`: which flow waited longest
    kFailed,       // for the record: operations of the job fail; `number`: a plan::Failure
    kLinkStalled,  // what `link` was given is not acknowledged: the peer's link to us on the same rails is worth no trust either
    kLinkRefused,  // for the record: an incarnation ended before it carried data; `report` says why
    kLinkSlow,     // for the record: `number` permille of what the others move; 1000: as good as they again. Told about once a second
                   // while it lasts, then with `again`
    kFlowOpened,   // acceptor: `flow` asks for listener `number`; answer with AcceptFlow() or RefuseFlow()
    kFlush,        // acceptor: what `link` brought for `flush` is to be made seen by the GPU; answer with Flushed(), or end the link
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
  Nanos heard = 0;
  FenceReport report;
  FlushName flush;
  Buffer buffer;  // of the message that is flushed
  std::string text;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_LINK_ACTION_H_
