#include "netplugin/flow/send_ledger.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/core/check.h"
#include "netplugin/flow/mutant.h"

namespace r2cc::net {

SendLedger::SendLedger(FlowId flow, const Limits& limits, uint64_t* order, BufferPool* pool)
    : flow_(flow), limits_(limits), order_(order), pool_(pool) {
  // An eager message is one chunk: it is staged, and replayed, whole.
  R2CC_CHECK(limits.eager_bytes <= kEagerBytesMax && limits.eager_bytes <= limits.chunk_base_bytes);
}

MessageId SendLedger::Post(const Buffer& from, uint64_t bytes, uint32_t chunk_base_bytes, RailSet rails) {
  R2CC_CHECK(bytes <= kMessageBytesMax);
  const MessageId id = posted_through();
  Message& message = messages_.emplace_back();
  message.from = from;
  message.rails = rails;
  message.bytes = bytes;
  message.eager = MayBeEager(id, bytes);
  message.chunk_bytes = ChunkBytesFor(bytes, message.eager ? limits_.chunk_base_bytes : chunk_base_bytes);
  if (IsActive(Mutant::kOffBoundary) && !message.eager) message.chunk_bytes -= 64;
  const bool granted = id < granted_through_;
  wants_grant_ = !granted && !message.eager && last_eager_;
  last_eager_ = message.eager;
  if (granted && bytes > capacities_[id - acked_through_])
    overflowed_ = true;
  else if (granted || message.eager || IsActive(Mutant::kUngranted))
    MakeSendable(id);
  return id;
}

void SendLedger::SetRails(RegionId memory, RailSet rails) {
  for (Message& message : messages_)
    if (message.from.memory != nullptr && message.from.memory->id == memory) message.rails = rails;
}

bool SendLedger::MayBeEager(MessageId id, uint64_t bytes) const {
  const bool credit = id < acked_through_ + eager_window_ || IsActive(Mutant::kEagerCredit);
  return bytes <= limits_.eager_bytes && limits_.eager_bytes > 0 && credit;
}

bool SendLedger::PostEagerly(const Buffer& from, uint64_t bytes, PathEpoch epoch, Chunk* out) {
  const MessageId id = posted_through();
  if (!MayBeEager(id, bytes) || (id < granted_through_ && bytes > capacities_[id - acked_through_])) return false;
  Message& message = messages_.emplace_back();
  message.from = from;
  message.bytes = bytes;
  message.eager = last_eager_ = true;
  message.chunk_bytes = limits_.chunk_base_bytes;
  message.holder.Assign(1, epoch);
  message.first_ready = 1;
  message.order = (*order_)++;
  wants_grant_ = false;
  if (first_ready_ + 1 == messages_.size()) ++first_ready_;
  *out = Chunk{flow_, id, bytes, message.chunk_bytes, 0, from.data, static_cast<uint32_t>(bytes), true, from.memory};
  return true;
}

const std::byte* SendLedger::Release(MessageId id) {
  if (id < acked_through_ || id >= posted_through()) return nullptr;
  Message& message = At(id);
  if (!message.eager) return nullptr;
  if (!message.released) {
    message.copy = pool_->Acquire(message.bytes);
    pool_->memory()->Copy(message.copy.get(), message.from, message.bytes);
    if (!IsActive(Mutant::kEagerUncopied)) message.from = message.copy.get();
    message.released = true;
    AdvanceDone();
  }
  return message.from.data;
}

std::shared_ptr<const std::byte[]> SendLedger::Copy(MessageId id) const {
  return id < acked_through_ || id >= posted_through() ? nullptr : messages_[id - acked_through_].copy;
}

void SendLedger::AdvanceDone() {
  done_through_ = std::max(done_through_, acked_through_);
  while (done_through_ < posted_through() && At(done_through_).released) ++done_through_;
  if (IsActive(Mutant::kDoneWhenSent))
    while (done_through_ < posted_through() && !At(done_through_).holder.empty() && At(done_through_).ready == 0) ++done_through_;
}

bool SendLedger::Grant(MessageId first, std::span<const uint64_t> capacities, std::span<const BufferPlace> places) {
  if (first > granted_through_ || capacities.size() > kChunksMax || (!places.empty() && places.size() != capacities.size())) return false;
  for (size_t i = 0; i < capacities.size(); ++i) {
    const MessageId id = first + i;
    if (id < acked_through_) continue;
    if (id < granted_through_) {
      if (capacities_[id - acked_through_] != capacities[i] || (!places.empty() && !Replace(id, places[i]))) return false;
      continue;
    }
    capacities_.push_back(capacities[i]);
    if (!places.empty() || !places_.empty()) {
      places_.resize(capacities_.size());
      if (!places.empty()) places_.back() = places[i];
    }
    ++granted_through_;
    if (id >= posted_through()) continue;
    Message& message = At(id);
    if (message.bytes > capacities[i])
      overflowed_ = true;
    else if (message.holder.empty())
      MakeSendable(id);
  }
  return true;
}

// A place that was said stays, whatever the receiver forgets of it.
bool SendLedger::Replace(MessageId id, const BufferPlace& place) {
  if (place.region == 0) return true;
  places_.resize(capacities_.size());
  BufferPlace& known = places_[id - acked_through_];
  if (known.region == 0) known = place;
  known.generation = std::max(known.generation, place.generation);
  return known.region == place.region && known.offset == place.offset;
}

const BufferPlace* SendLedger::PlaceOf(MessageId id) const {
  if (id < acked_through_ || id - acked_through_ >= places_.size()) return nullptr;
  const BufferPlace& place = places_[id - acked_through_];
  return place.region == 0 ? nullptr : &place;
}

void SendLedger::MakeSendable(MessageId id) {
  Message& message = At(id);
  message.holder.Assign(ChunkCount(message.bytes, message.chunk_bytes), kReady);
  message.ready = static_cast<uint32_t>(message.holder.size());
  message.order = (*order_)++;
  ready_bytes_ += message.bytes;
  first_ready_ = std::min<size_t>(first_ready_, id - acked_through_);
}

SendLedger::Ready SendLedger::NextReady() const {
  for (size_t i = first_ready_; i < messages_.size(); ++i) {
    const Message& message = messages_[i];
    if (message.ready == 0) continue;
    const RegionId region = message.eager || i >= places_.size() ? 0 : places_[i].region;
    const auto chunk_bytes = static_cast<uint32_t>(std::min<uint64_t>(message.bytes, message.chunk_bytes));
    return {true, message.ready < message.holder.size(), message.eager, message.order, region, message.rails, chunk_bytes};
  }
  return {};
}

uint32_t SendLedger::ReadyChunks(uint32_t most) const {
  uint32_t chunks = 0;
  for (size_t i = first_ready_; i < messages_.size() && chunks < most; ++i) chunks += messages_[i].ready;
  return std::min(chunks, most);
}

bool SendLedger::Pull(PathEpoch epoch, Chunk* out) {
  R2CC_CHECK(IsPathEpoch(epoch));
  for (; first_ready_ < messages_.size(); ++first_ready_) {
    Message& message = messages_[first_ready_];
    // A message that waits for its grant may become ready later than those behind it: then the search begins there again.
    if (message.ready == 0) continue;
    uint32_t index = message.first_ready;
    while (message.holder[index] != kReady) ++index;
    message.holder[index] = epoch;
    message.first_ready = index + 1;
    --message.ready;
    *out = Chunk{flow_,
                 acked_through_ + first_ready_,
                 message.bytes,
                 message.chunk_bytes,
                 index,
                 message.from.data + uint64_t{index} * message.chunk_bytes,
                 ChunkLength(message.bytes, message.chunk_bytes, index),
                 message.eager,
                 message.from.memory};
    ready_bytes_ -= out->bytes;
    if (message.ready == 0) ++first_ready_;
    return true;
  }
  return false;
}

void SendLedger::Arrived(const FlowArrivals& arrivals) {
  AckThrough(std::min(arrivals.placed_through, posted_through()));
  for (const MessageArrivals& partial : arrivals.partial) {
    if (partial.message < acked_through_ || partial.message >= posted_through()) continue;
    Message& message = At(partial.message);
    // Of a message that is one chunk the receiver need not know how large others would be.
    const bool same = partial.chunk_bytes == message.chunk_bytes || partial.placed.size() == 1;
    if (!same || partial.placed.size() != message.holder.size()) continue;
    for (size_t i = 0; i < message.holder.size(); ++i)
      if (partial.placed[i] && message.holder[i] != kReady) message.holder[i] = kPlaced;
  }
}

uint64_t SendLedger::Reclaim(PathEpoch epoch) {
  uint64_t replay_bytes = 0;
  for (Message& message : messages_) {
    for (uint32_t i = 0; i < message.holder.size(); ++i) {
      if (message.holder[i] != epoch) continue;
      message.holder[i] = kReady;
      if (IsActive(Mutant::kEagerFreed) && message.released) std::memset(message.copy.get(), 0xdb, message.bytes);
      message.first_ready = std::min(message.first_ready, i);
      ++message.ready;
      replay_bytes += ChunkLength(message.bytes, message.chunk_bytes, i);
    }
  }
  ready_bytes_ += replay_bytes;
  first_ready_ = 0;
  return replay_bytes;
}

bool SendLedger::AckThrough(MessageId through) {
  if (through > posted_through()) return false;
  while (acked_through_ < through) {
    // A receiver can only have placed what was in flight on a path.
    if (messages_.front().holder.empty() || messages_.front().ready > 0) break;
    pool_->Release(std::move(messages_.front().copy), messages_.front().bytes);
    messages_.pop_front();
    if (first_ready_ > 0) --first_ready_;
    ++acked_through_;
    if (capacities_.empty())
      granted_through_ = acked_through_;  // an eager message needs no grant
    else
      capacities_.pop_front();
    if (!places_.empty()) places_.pop_front();
  }
  AdvanceDone();
  return acked_through_ >= through;
}

MessageId SendLedger::HeldThrough(PathEpoch epoch) const {
  for (size_t i = messages_.size(); i > 0; --i) {
    const Message& message = messages_[i - 1];
    for (uint32_t chunk = 0; chunk < message.holder.size(); ++chunk)
      if (message.holder[chunk] == epoch) return acked_through_ + i;
  }
  return 0;
}

}  // namespace r2cc::net
