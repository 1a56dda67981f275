#include "netplugin/flow/recv_ledger.h"

#include "base/core/check.h"

namespace r2cc::net {

MessageId RecvLedger::Post(void* data, uint64_t capacity_bytes) {
  const MessageId id = posted_through();
  Message message;
  message.data = static_cast<std::byte*>(data);
  message.capacity_bytes = capacity_bytes;
  messages_.push_back(std::move(message));
  return id;
}

RecvLedger::Verdict RecvLedger::Begin(const Chunk& header, Carrier carrier, std::byte** destination) {
  if (header.message >= posted_through()) return Verdict::kRefuse;
  if (header.message < placed_through_) return Verdict::kDiscard;
  Message& message = messages_[header.message - placed_through_];
  if (message.claim.empty()) {
    if (header.message_bytes > message.capacity_bytes || header.chunk_bytes == 0 || header.chunk_bytes % kChunkAlignment != 0)
      return Verdict::kRefuse;
    const uint64_t count = header.message_bytes == 0 ? 1 : (header.message_bytes + header.chunk_bytes - 1) / header.chunk_bytes;
    if (count > kChunksMax) return Verdict::kRefuse;
    message.bytes = header.message_bytes;
    message.chunk_bytes = header.chunk_bytes;
    message.missing = static_cast<uint32_t>(count);
    message.claim.assign(count, kAbsent);
  } else if (message.bytes != header.message_bytes || message.chunk_bytes != header.chunk_bytes) {
    return Verdict::kRefuse;
  }
  if (header.index >= message.claim.size() || header.bytes != ChunkLength(message.bytes, message.chunk_bytes, header.index))
    return Verdict::kRefuse;
  Carrier& claim = message.claim[header.index];
  if (claim == kPlaced) return Verdict::kDiscard;
  if (claim != kAbsent) return Verdict::kRefuse;  // another carrier may still write it: replayed before its fence
  claim = carrier;
  *destination = message.data + header.offset();
  return Verdict::kPlace;
}

bool RecvLedger::Finish(MessageId id, uint32_t index, Carrier carrier) {
  R2CC_CHECK(id >= placed_through_ && id < posted_through());
  Message& message = messages_[id - placed_through_];
  R2CC_CHECK(index < message.claim.size() && message.claim[index] == carrier);
  message.claim[index] = kPlaced;
  --message.missing;
  const MessageId before = placed_through_;
  while (!messages_.empty() && !messages_.front().claim.empty() && messages_.front().missing == 0) {
    sizes_[placed_through_ % kSizesKept] = messages_.front().bytes;
    messages_.pop_front();
    ++placed_through_;
  }
  return placed_through_ != before;
}

void RecvLedger::Drop(Carrier carrier) {
  for (Message& message : messages_)
    for (Carrier& claim : message.claim)
      if (claim == carrier) claim = kAbsent;
}

uint64_t RecvLedger::SizeOf(MessageId id) const {
  R2CC_CHECK(id < placed_through_ && placed_through_ - id <= kSizesKept);
  return sizes_[id % kSizesKept];
}

FlowArrivals RecvLedger::Arrivals() const {
  FlowArrivals arrivals{flow_, placed_through_, {}};
  for (size_t i = 0; i < messages_.size(); ++i) {
    const Message& message = messages_[i];
    if (message.claim.empty() || message.missing == message.claim.size()) continue;
    MessageArrivals partial{placed_through_ + i, message.chunk_bytes, std::vector<bool>(message.claim.size())};
    for (size_t chunk = 0; chunk < message.claim.size(); ++chunk) partial.placed[chunk] = message.claim[chunk] == kPlaced;
    arrivals.partial.push_back(std::move(partial));
  }
  return arrivals;
}

std::vector<uint64_t> RecvLedger::Capacities(MessageId from) const {
  std::vector<uint64_t> capacities;
  for (MessageId id = from < placed_through_ ? placed_through_ : from; id < posted_through(); ++id)
    capacities.push_back(messages_[id - placed_through_].capacity_bytes);
  return capacities;
}

}  // namespace r2cc::net
