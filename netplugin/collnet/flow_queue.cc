#include "netplugin/collnet/flow_queue.h"

#include "base/core/check.h"

namespace r2cc::collnet {

void FlowQueue::SetFlow(net::FlowPort* port, net::FlowRef flow, uint64_t done) {
  R2CC_CHECK(!has_flow());
  port_ = port;
  flow_ = flow;
  given_ = posted_ = done;
  if (weight_ != 1) port_->SetWeight(flow_, weight_);
  if (dealt_) port_->SetDealt(flow_, true);
}

void FlowQueue::AddOwn(Request::Kind kind, Bytes own) {
  const uint64_t bytes = own.size();
  Add({kind, {}, bytes, std::move(own)});
}

void FlowQueue::SetWeight(double weight) {
  if (weight == weight_) return;
  weight_ = weight;
  if (has_flow()) port_->SetWeight(flow_, weight_);
}

void FlowQueue::SetDealt(bool dealt) {
  if (dealt == dealt_) return;
  dealt_ = dealt;
  if (has_flow()) port_->SetDealt(flow_, dealt_);
}

void FlowQueue::Post() {
  if (!has_flow()) return;
  for (; posted_ < given_ + requests_.size(); ++posted_) {
    const Request& next = requests_[posted_ - given_];
    const net::Buffer buffer = next.own.empty() ? next.buffer : net::Buffer(next.own.data());
    const bool taken = direction_ == Direction::kSends ? port_->Send(flow_, buffer, next.bytes) : port_->Receive(flow_, buffer, next.bytes);
    if (!taken) return;
  }
}

std::optional<FlowQueue::Request> FlowQueue::TakeDone() {
  if (!has_flow() || idle()) return std::nullopt;
  Post();
  if (port_->DoneThrough(flow_) <= given_) return std::nullopt;
  Request done = std::move(requests_.front());
  requests_.pop_front();
  if (direction_ == Direction::kReceives) done.came_bytes = port_->SizeOf(flow_, given_);
  ++given_;
  return done;
}

}  // namespace r2cc::collnet
