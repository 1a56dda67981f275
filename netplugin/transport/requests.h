// Posts requests of a flow and checks whether they are done, for NCCL's entry points and for FlowPort.
#ifndef R2CC_NETPLUGIN_TRANSPORT_REQUESTS_H_
#define R2CC_NETPLUGIN_TRANSPORT_REQUESTS_H_

#include <cstdint>
#include <string>

#include "netplugin/transport/bounce.h"
#include "netplugin/transport/comm.h"
#include "netplugin/transport/peer.h"

namespace r2cc::net {

// Returns the request's number. The buffer must stay until the request is done or the flow is closed. If it throws, the flow has ended.
inline uint64_t PostRequest(Peer* peer, FlowId flow, Comm* comm, const Buffer& buffer, uint64_t bytes) {
  const uint64_t number = comm->posted++;
  try {
    Buffer posted = buffer;
    const bool reached = buffer.is_device() ? buffer.memory->id != 0 && peer->by_devices() : buffer.memory != nullptr;
    if (!reached && buffer.is_device()) posted.memory = nullptr;
    if (comm->bounce != nullptr && !reached && bytes > 0) {
      std::string error;
      posted = comm->bounce->Post(number, buffer, bytes, &error);
      if (posted.data == nullptr) {
        comm->Fail(error, false);
        return number;
      }
    }
    peer->Submit(flow, posted, bytes);
  } catch (...) {
    comm->Break();
    throw;
  }
  return number;
}

// All requests below this number are done, and their data is in the job's buffers.
inline uint64_t DoneThroughOf(Comm* comm) {
  const uint64_t done = comm->done_through.load(std::memory_order_acquire);
  if (comm->bounce == nullptr) return done;
  std::string error;
  const uint64_t finished = comm->bounce->Finish(done, comm->sizes, &error);
  if (finished < done) comm->Fail(error, false);
  return finished;
}

struct RequestState {
  bool done = false;
  bool failed = false;  // not done, and never will be
};

// Makes what progress is possible if the request is not done yet.
inline RequestState LookAtRequest(Peer* peer, FlowId flow, Comm* comm, uint64_t number) {
  if (comm->done_through.load(std::memory_order_acquire) <= number) peer->Progress(flow);
  // The state is read first: a request that was done before the flow failed is done.
  const bool failed = comm->state.load(std::memory_order_acquire) == Comm::State::kFailed;
  const bool done = DoneThroughOf(comm) > number;
  return {done, failed && !done};
}

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_REQUESTS_H_
