// Measures what the loss of a link costs the flows of a session. Pure.
//
// A flow makes progress when the peer has all of one more of its messages: then the job's request is done, too. A flow that has nothing
// outstanding makes progress when it posts. The stall is the longest gap between two such moments, from the last one before the loss until
// the flow has all messages behind it that the link held. A loss is passed when that is true for each flow that the link held up.
//
// A link that is lost because the peer's process ended is no fault of a NIC. So a loss is reported when the peer has answered, or when the
// process has not been found gone for kFaultReportAfter; and not at all once no flow is open any more.
#ifndef R2CC_NETPLUGIN_LINK_FAULT_WATCH_H_
#define R2CC_NETPLUGIN_LINK_FAULT_WATCH_H_

#include <vector>

#include "base/core/clock.h"
#include "netplugin/flow/send_flows.h"
#include "netplugin/link/action.h"

namespace r2cc::net {

class FaultWatch {
 public:
  // Adds kLinkLost and kLinkPassed to `actions`. Both outlive it.
  FaultWatch(std::vector<SessionAction>* actions, SendFlows* flows) : actions_(actions), flows_(flows) {}

  // An incarnation of a link is lost, and its chunks are still in flight on `epoch`. Only the first call for an incarnation counts.
  void Lost(LinkId link, Incarnation incarnation, PathEpoch epoch, const LinkFault& why, Nanos now);
  // The peer has ended the incarnation: the chunks that it held can travel again.
  void Answered(LinkId link, Incarnation incarnation, Nanos now);
  // The receiver has posted buffers for the flow.
  void Granted(const SendFlows::Flow& flow, Nanos now) {
    if (!faults_.empty()) EndWaitForGrant(flow, now);
  }
  void Tick(Nanos now);
  // The session fails. `gone`: because the peer's process ended.
  void End(bool gone);
  // The flow got a post; `was_idle`: it had nothing outstanding before.
  void Posted(SendFlows::Flow* flow, bool was_idle, Nanos now) {
    if (was_idle) flow->progressed = now;
  }
  // One more message of the flow is done.
  void Progressed(SendFlows::Flow* flow, Nanos now) {
    if (!faults_.empty()) Pass(*flow, now);
    flow->progressed = now;
  }
  // The flow is about to close. `in_order`: the peer has all of it.
  void Closed(const SendFlows::Flow& flow, bool in_order, Nanos now);
  // The flow failed: the fault that held it up does not pass any more.
  void Failed(const SendFlows::Flow& flow);

 private:
  struct Held {
    FlowId flow = 0;
    MessageId through = 0;  // all messages below must be done
    Nanos since = 0;        // its last progress
    bool grant = false;     // it waits for a grant: the grant may be lost, or the receiver has posted nothing yet
  };
  struct Fault {
    LinkId link = 0;
    Incarnation incarnation = 0;
    LinkFault why;
    Nanos lost = 0;
    bool reported = false;
    Nanos answered = 0;   // 0: not yet
    bool passed = false;  // it held nothing, or all that it held is done
    Nanos gap = 0;        // the longest gap; `gap_flow`: the flow that had it
    Nanos gap_end = 0;
    FlowId gap_flow = 0;
    std::vector<Held> held;
  };
  void Pass(const SendFlows::Flow& flow, Nanos now);
  void EndWaitForGrant(const SendFlows::Flow& flow, Nanos now);
  void Report(Fault* fault);
  void ReportPassed();

  std::vector<SessionAction>* const actions_;
  SendFlows* const flows_;
  std::vector<Fault> faults_;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_LINK_FAULT_WATCH_H_
