// How the owner of a flow posts requests and waits for them: NCCL's entry points and FlowPort alike.
#ifndef R2CC_NETPLUGIN_TRANSPORT_REQUESTS_H_
#define R2CC_NETPLUGIN_TRANSPORT_REQUESTS_H_

#include <cstdint>

#include "netplugin/transport/comm.h"
#include "netplugin/transport/peer.h"

namespace r2cc::net {

// Returns the request's number. The buffer must stay until the request is done or the flow is closed. What throws has ended the flow.
inline uint64_t PostRequest(Peer* peer, FlowId flow, Comm* comm, const Buffer& buffer, uint64_t bytes) {
  const uint64_t number = comm->posted++;
  try {
    peer->Submit(flow, buffer, bytes);
  } catch (...) {
    comm->Break();
    throw;
  }
  return number;
}

struct RequestState {
  bool done = false;
  bool failed = false;  // not done, and never will be
};

// Moves what there is to move if the request is not done yet.
inline RequestState LookAtRequest(Peer* peer, FlowId flow, const Comm& comm, uint64_t number) {
  if (comm.done_through.load(std::memory_order_acquire) <= number) peer->Progress(flow);
  // The state is read first: what was done before the flow failed is done.
  const bool failed = comm.state.load(std::memory_order_acquire) == Comm::State::kFailed;
  const bool done = comm.done_through.load(std::memory_order_acquire) > number;
  return {done, failed && !done};
}

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_REQUESTS_H_
