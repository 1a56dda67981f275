#include "netplugin/flow/send_ledger.h"

#include <algorithm>

#include "base/core/check.h"

namespace r2cc::net {

MessageId SendLedger::Post(const void* data, uint64_t bytes) {
  R2CC_CHECK(bytes <= kMessageBytesMax);
  const MessageId id = posted_through();
  Message message;
  message.data = static_cast<const std::byte*>(data);
  message.bytes = bytes;
  message.chunk_bytes = ChunkBytesFor(bytes, chunk_base_bytes_);
  messages_.push_back(std::move(message));
  if (id < granted_through_) MakeSendable(id);
  return id;
}

bool SendLedger::Grant(MessageId first, std::span<const uint64_t> capacities) {
  if (first > granted_through_ || capacities.size() > kChunksMax) return false;
  for (size_t i = 0; i < capacities.size(); ++i) {
    const MessageId id = first + i;
    if (id < acked_through_) continue;
    if (id < granted_through_) {
      if (capacities_[id - acked_through_] != capacities[i]) return false;
      continue;
    }
    capacities_.push_back(capacities[i]);
    ++granted_through_;
    if (id < posted_through()) MakeSendable(id);
  }
  return true;
}

void SendLedger::MakeSendable(MessageId id) {
  Message& message = messages_[id - acked_through_];
  if (message.bytes > capacities_[id - acked_through_]) {
    overflowed_ = true;
    return;
  }
  message.holder.assign(ChunkCount(message.bytes, message.chunk_bytes), kReady);
  message.ready = static_cast<uint32_t>(message.holder.size());
  message.order = (*order_)++;
}

SendLedger::Ready SendLedger::NextReady() const {
  for (const Message& message : messages_)
    if (message.ready > 0) return {true, message.ready < message.holder.size(), message.order};
  return {};
}

bool SendLedger::Pull(Carrier carrier, Chunk* out) {
  R2CC_CHECK(IsCarrier(carrier));
  for (size_t i = 0; i < messages_.size(); ++i) {
    Message& message = messages_[i];
    if (message.ready == 0) continue;
    uint32_t index = message.first_ready;
    while (message.holder[index] != kReady) ++index;
    message.holder[index] = carrier;
    message.first_ready = index + 1;
    --message.ready;
    *out = Chunk{flow_,
                 acked_through_ + i,
                 message.bytes,
                 message.chunk_bytes,
                 index,
                 message.data + uint64_t{index} * message.chunk_bytes,
                 ChunkLength(message.bytes, message.chunk_bytes, index)};
    return true;
  }
  return false;
}

uint64_t SendLedger::Reclaim(Carrier carrier, const FlowArrivals& arrivals) {
  // What the receiver placed, through whichever carrier, never travels again.
  AckThrough(std::min(arrivals.placed_through, posted_through()));
  for (const MessageArrivals& partial : arrivals.partial) {
    if (partial.message < acked_through_ || partial.message >= posted_through()) continue;
    Message& message = messages_[partial.message - acked_through_];
    if (partial.chunk_bytes != message.chunk_bytes || partial.placed.size() != message.holder.size()) continue;
    for (size_t i = 0; i < message.holder.size(); ++i)
      if (partial.placed[i] && message.holder[i] != kReady) message.holder[i] = kPlaced;
  }
  uint64_t replay_bytes = 0;
  for (Message& message : messages_) {
    for (uint32_t i = 0; i < message.holder.size(); ++i) {
      if (message.holder[i] != carrier) continue;
      message.holder[i] = kReady;
      message.first_ready = std::min(message.first_ready, i);
      ++message.ready;
      replay_bytes += ChunkLength(message.bytes, message.chunk_bytes, i);
    }
  }
  return replay_bytes;
}

bool SendLedger::AckThrough(MessageId through) {
  if (through > posted_through()) return false;
  while (acked_through_ < through) {
    // A receiver can only have placed what was entrusted to a carrier.
    if (messages_.front().holder.empty() || messages_.front().ready > 0) return false;
    messages_.pop_front();
    capacities_.pop_front();
    ++acked_through_;
  }
  return true;
}

uint64_t SendLedger::EntrustedBytes(Carrier carrier) const {
  uint64_t bytes = 0;
  for (const Message& message : messages_)
    for (uint32_t i = 0; i < message.holder.size(); ++i)
      if (message.holder[i] == carrier) bytes += ChunkLength(message.bytes, message.chunk_bytes, i);
  return bytes;
}

}  // namespace r2cc::net
