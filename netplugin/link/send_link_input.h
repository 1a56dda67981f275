// Takes the reports of the transport, the kernel and the health page on single links. They take effect at the next action or tick of the
// session.
#ifndef R2CC_NETPLUGIN_LINK_SEND_LINK_INPUT_H_
#define R2CC_NETPLUGIN_LINK_SEND_LINK_INPUT_H_

#include <cstdint>
#include <span>

#include "base/core/clock.h"
#include "netplugin/flow/stripe.h"
#include "netplugin/flow/types.h"
#include "netplugin/link/cross_rail.h"
#include "netplugin/link/link_progress.h"

namespace r2cc::net {

class SendLinkInput {
 public:
  virtual ~SendLinkInput() = default;

  // The answer to kOpenLink.
  virtual void Connected(LinkId link, Incarnation incarnation, Nanos now) = 0;
  // The page's verdicts on this node's rails, on the peer's, and on the paths between them.
  virtual void LocalVerdict(uint16_t rail, RailVerdict verdict, Nanos now) = 0;
  virtual void RemoteVerdict(uint16_t rail, RailVerdict verdict, Nanos now) = 0;
  virtual void PathVerdict(RailPair rails, bool broken, Nanos now) = 0;
  // The counters of the kernel or the device since the incarnation began: bytes that the peer's kernel acknowledged, and time with
  // something to deliver. `limited`: it has more data than it can send now. `bulk`: the data since the last call was bulk. Small messages
  // show no rate, because most of their time is spent waiting for an answer.
  virtual void Rate(LinkId link, Incarnation incarnation, uint64_t delivered_bytes, Nanos busy, bool limited, bool bulk, Nanos now) = 0;
  // The kernel's facts about the incarnation's connections: see LinkProgress. Call at least every 25 ms while anything is outstanding.
  virtual void Progress(LinkId link, Incarnation incarnation, std::span<const PathFacts> paths, Nanos now) = 0;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_LINK_SEND_LINK_INPUT_H_
