#include "netplugin/transport/flow_port.h"

#include "base/core/check.h"

namespace r2cc::net {

const PeerFlowPort::Flow& PeerFlowPort::At(FlowRef flow) const {
  R2CC_CHECK(flow < flows_.size() && flows_[flow].comm != nullptr);
  return flows_[flow];
}

bool PeerFlowPort::Failed(FlowRef ref) const { return ref < flows_.size() && !flows_[ref].error.empty(); }

bool PeerFlowPort::Post(FlowRef ref, const Buffer& buffer, uint64_t bytes) {
  if (Failed(ref)) return false;
  const Flow& flow = At(ref);
  R2CC_CHECK(bytes <= kMessageBytesMax);
  if (flow.comm->posted - DoneThroughOf(flow.comm) >= kRequestsMax) return false;
  PostRequest(flow.peer, flow.id, flow.comm, buffer, bytes);
  return true;
}

uint64_t PeerFlowPort::DoneThrough(FlowRef ref) {
  if (Failed(ref)) return 0;
  const Flow& flow = At(ref);
  if (flow.comm->posted > 0) LookAtRequest(flow.peer, flow.id, flow.comm, flow.comm->posted - 1);
  return DoneThroughOf(flow.comm);
}

std::string PeerFlowPort::Error(FlowRef ref) {
  if (Failed(ref)) return flows_[ref].error;
  const Comm& comm = *At(ref).comm;
  if (comm.state.load(std::memory_order_acquire) != Comm::State::kFailed) return "";
  const std::string line = comm.error();
  return line.empty() ? "R2CC: the flow was broken off" : line;
}

bool PeerFlowPort::HasPath(FlowRef ref) {
  if (!Error(ref).empty()) return false;
  const Flow& flow = At(ref);
  const PeerLock lock(*flow.peer);
  return flow.peer->has_link();
}

bool PeerFlowPort::SetWeight(FlowRef ref, double weight) {
  if (Failed(ref)) return false;
  const Flow& flow = At(ref);
  if (flow.sender == nullptr) return false;
  const PeerLock lock(*flow.sender);
  return flow.sender->SetWeight(flow.id, weight);
}

void PeerFlowPort::SetDealt(FlowRef ref, bool dealt) {
  if (Failed(ref)) return;
  const Flow& flow = At(ref);
  if (flow.sender == nullptr) return;
  const PeerLock lock(*flow.sender);
  flow.sender->SetDealt(flow.id, dealt);
}

void PeerFlowPort::Close(FlowRef ref) {
  if (Failed(ref)) {
    flows_[ref] = {};
    return;
  }
  static_cast<void>(At(ref));
  std::exchange(flows_[ref], {}).close();
}

}  // namespace r2cc::net
