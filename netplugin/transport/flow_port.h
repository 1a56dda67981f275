// Implements FlowPort (flow/flow_port.h) over the peers of a process.
#ifndef R2CC_NETPLUGIN_TRANSPORT_FLOW_PORT_H_
#define R2CC_NETPLUGIN_TRANSPORT_FLOW_PORT_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "netplugin/flow/flow_port.h"
#include "netplugin/transport/requests.h"
#include "netplugin/transport/send_peer.h"

namespace r2cc::net {

// Over peers, whichever transports those use.
class PeerFlowPort final : public FlowPort {
 public:
  // `comm`: the flow's comm at this end, from the code that opened or accepted the flow. It lives until `close` has returned, which closes
  // it.
  FlowRef Add(SendPeer* peer, FlowId flow, Comm* comm, std::function<void()> close) {
    return Add({peer, peer, flow, comm, std::move(close)});
  }
  FlowRef Add(Peer* receiver, FlowId flow, Comm* comm, std::function<void()> close) {
    return Add({receiver, nullptr, flow, comm, std::move(close)});
  }

  // Adds a flow that could not be opened at all.
  FlowRef AddFailed(std::string error) {
    Flow failed;
    failed.error = std::move(error);
    return Add(std::move(failed));
  }

  bool Send(FlowRef flow, const Buffer& from, uint64_t bytes) override { return Post(flow, from, bytes); }
  bool Receive(FlowRef flow, const Buffer& to, uint64_t capacity_bytes) override { return Post(flow, to, capacity_bytes); }
  uint64_t DoneThrough(FlowRef flow) override;
  uint64_t SizeOf(FlowRef flow, uint64_t number) override { return At(flow).comm->sizes[number % kRequestsMax]; }
  std::string Error(FlowRef flow) override;
  bool HasPath(FlowRef flow) override;
  bool SetWeight(FlowRef flow, double weight) override;
  void SetDealt(FlowRef flow, bool dealt) override;
  void Close(FlowRef flow) override;

 private:
  struct Flow {
    Peer* peer = nullptr;
    SendPeer* sender = nullptr;  // the same peer, for a sending flow
    FlowId id = 0;
    Comm* comm = nullptr;
    std::function<void()> close;
    std::string error;  // why it could not be opened
  };
  FlowRef Add(Flow flow) {
    flows_.push_back(std::move(flow));
    return static_cast<FlowRef>(flows_.size() - 1);
  }
  // A flow that was added, could be opened, and is not closed.
  const Flow& At(FlowRef flow) const;
  bool Failed(FlowRef flow) const;
  bool Post(FlowRef flow, const Buffer& buffer, uint64_t bytes);

  std::vector<Flow> flows_;  // by FlowRef; closed ones have no comm
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_FLOW_PORT_H_
