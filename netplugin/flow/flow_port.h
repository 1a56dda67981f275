// Flows beside NCCL's own, for whoever moves bytes by a schedule: opened as NCCL opens its flows, over the same peers, links and faults.
//
// Contract: the requests of a flow are done in the order of their posts. A send is done when the receiver has all of it, or a copy of it is
// kept until then: its bytes are never read from the buffer again. A receive is done when all of it is in its buffer. A flow that has
// failed stays so; what was done before is done. Rails may come and go meanwhile: that is no error.
//
// Threads: a port and its flows belong to one thread at a time. No call waits for a peer, and none but Close() for the own device. What
// throws, where there is no memory left, has ended the flow. All flows are closed before the port ends.
#ifndef R2CC_NETPLUGIN_FLOW_FLOW_PORT_H_
#define R2CC_NETPLUGIN_FLOW_FLOW_PORT_H_

#include <cstdint>
#include <string>

#include "netplugin/flow/memory.h"

namespace r2cc::net {

// One end of a flow; of one port.
using FlowRef = uint32_t;

class FlowPort {
 public:
  virtual ~FlowPort() = default;
  // At most kMessageBytesMax bytes. The buffer stays until DoneThrough() is more than the number of requests posted before this one. False:
  // so many are outstanding that nothing was posted.
  virtual bool Send(FlowRef flow, const Buffer& from, uint64_t bytes) = 0;
  virtual bool Receive(FlowRef flow, const Buffer& to, uint64_t capacity_bytes) = 0;
  // Moves what there is to move. So many requests are done, and their buffers are the caller's again.
  virtual uint64_t DoneThrough(FlowRef flow) = 0;
  // Of a receiving flow: how many bytes came for the request of that number, the first being 0. It is done, and one of the last 32.
  virtual uint64_t SizeOf(FlowRef flow, uint64_t number) = 0;
  // One line; empty while the flow can go on.
  virtual std::string Error(FlowRef flow) = 0;
  // Some rail joins the two ends at the moment. False: what is posted waits for one until the deadline, and then the flow fails; one with
  // nothing posted waits without limit.
  virtual bool HasPath(FlowRef flow) = 0;
  // What a sending flow gets of the links that it shares, relative to the other flows there; 1 unless set. Within the bounds of
  // SendFlows::SetWeight(): else false, and nothing changes.
  virtual bool SetWeight(FlowRef flow, double weight) = 0;
  // Of a sending flow: its chunks go to whichever rail has room, although all rails are sound, and so do those of all other flows to that
  // process. False unless set.
  virtual void SetDealt(FlowRef flow, bool dealt) = 0;
  // When it returns nothing touches the flow's buffers. What was done as a copy is still delivered.
  virtual void Close(FlowRef flow) = 0;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_FLOW_FLOW_PORT_H_
