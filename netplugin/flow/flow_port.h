// Opens flows in addition to NCCL's own, for code that moves bytes by a schedule. They use the same peers and links, and survive the same
// faults, as NCCL's flows.
//
// Contract: the requests of a flow complete in the order of their posts. A send is done when the receiver has all of it, or when the sender
// keeps a copy until then: its bytes are never read from the buffer again. A receive is done when all of it is in its buffer. A flow that
// has failed stays failed; requests that were done stay done. A rail that comes or goes meanwhile is no error.
//
// Threads: a port and its flows belong to one thread at a time. No call waits for a peer. Only Close() waits for this node's own device. A
// call that throws, because there is no memory left, has ended the flow. All flows are closed before the port ends.
#ifndef R2CC_NETPLUGIN_FLOW_FLOW_PORT_H_
#define R2CC_NETPLUGIN_FLOW_FLOW_PORT_H_

#include <cstdint>
#include <string>

#include "netplugin/flow/memory.h"

namespace r2cc::net {

// Names one end of a flow. Valid for one port.
using FlowRef = uint32_t;

class FlowPort {
 public:
  virtual ~FlowPort() = default;
  // At most kMessageBytesMax bytes. The buffer must stay until DoneThrough() is more than the number of requests posted before this one.
  // False: too many requests are outstanding, and nothing was posted.
  virtual bool Send(FlowRef flow, const Buffer& from, uint64_t bytes) = 0;
  virtual bool Receive(FlowRef flow, const Buffer& to, uint64_t capacity_bytes) = 0;
  // Makes what progress is possible. Returns the number of requests that are done; their buffers are the caller's again.
  virtual uint64_t DoneThrough(FlowRef flow) = 0;
  // For a receiving flow: how many bytes came for the request of that number; the first is 0. The request must be done, and one of the last
  // 32.
  virtual uint64_t SizeOf(FlowRef flow, uint64_t number) = 0;
  // Why the flow failed, in one line; empty while the flow can go on.
  virtual std::string Error(FlowRef flow) = 0;
  // True if some rail joins the two ends now. Otherwise posted requests wait for one until the deadline, and then the flow fails. A flow
  // with nothing posted waits without limit.
  virtual bool HasPath(FlowRef flow) = 0;
  // Sets the share of a sending flow on the links that it uses, relative to the other flows there; 1 unless set. The bounds are those of
  // SendFlows::SetWeight(): outside them it returns false and changes nothing.
  virtual bool SetWeight(FlowRef flow, double weight) = 0;
  // For a sending flow: lets any rail that has room take its chunks, even while all rails are sound. All other flows to that process are
  // treated the same. False unless set.
  virtual void SetDealt(FlowRef flow, bool dealt) = 0;
  // When it returns, nothing touches the flow's buffers. Sends that were done as a copy are still delivered.
  virtual void Close(FlowRef flow) = 0;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_FLOW_FLOW_PORT_H_
