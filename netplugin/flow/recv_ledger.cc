#include "netplugin/flow/recv_ledger.h"

#include <set>

#include "base/core/check.h"
#include "netplugin/flow/mutant.h"

namespace r2cc::net {

MessageId RecvLedger::Post(const Buffer& to, uint64_t capacity_bytes) {
  const MessageId id = posted_through();
  Message& message = messages_.emplace_back();
  message.to = to;
  message.capacity_bytes = capacity_bytes;
  if (!staged_.empty()) {
    Unstage(id);
    Advance();
  }
  return id;
}

RecvLedger::Verdict RecvLedger::BeginStaged(const Chunk& header, PathEpoch epoch, std::byte** destination) {
  const bool whole = header.bytes == header.message_bytes && header.index == 0;
  if (!header.eager || !whole || header.bytes > kEagerBytesMax || header.message >= placed_through_ + kEagerWindow) return Verdict::kRefuse;
  Staged& staged = staged_[header.message];
  if (staged.claim == kPlaced) return Verdict::kDiscard;
  if (staged.claim != kAbsent) return Verdict::kRefuse;
  staged.claim = epoch;
  staged.chunk_bytes = header.chunk_bytes;
  staged.bytes = header.bytes;
  staged.data = memory_->Allocate(header.bytes);
  *destination = staged.data.get();
  return Verdict::kPlace;
}

void RecvLedger::Unstage(MessageId id) {
  const auto it = staged_.find(id);
  if (it == staged_.end() || it->second.claim != kPlaced || id >= posted_through()) return;
  const Staged& staged = it->second;
  Message& message = messages_[id - placed_through_];
  if (staged.bytes > message.capacity_bytes) {
    overflowed_ = true;
    return;
  }
  memory_->Copy(message.to, staged.data.get(), staged.bytes);
  message.bytes = staged.bytes;
  message.chunk_bytes = staged.chunk_bytes;
  message.eager = true;
  message.missing = 0;
  message.claim.Assign(1, kPlaced);
  staged_.erase(it);
}

RecvLedger::Verdict RecvLedger::Begin(const Chunk& header, PathEpoch epoch, std::byte** destination) {
  if (header.chunk_bytes == 0 || header.chunk_bytes % kChunkAlignment != 0) return Verdict::kRefuse;
  if (header.message < placed_through_) return Verdict::kDiscard;
  if (IsActive(Mutant::kZeroForgotten) && header.message_bytes == 0) return Verdict::kDiscard;
  if (const auto it = staged_.find(header.message); it != staged_.end() && it->second.claim == kAbsent) staged_.erase(it);
  if (header.message >= posted_through() || staged_.contains(header.message)) return BeginStaged(header, epoch, destination);
  Message& message = messages_[header.message - placed_through_];
  if (message.claim.empty()) {
    if (header.message_bytes > message.capacity_bytes) {
      // An eager sender could not know the buffer: that is its job's mistake, not the wire's.
      overflowed_ = overflowed_ || header.eager;
      return header.eager ? Verdict::kDiscard : Verdict::kRefuse;
    }
    const uint64_t count = header.message_bytes == 0 ? 1 : (header.message_bytes + header.chunk_bytes - 1) / header.chunk_bytes;
    if (count > kChunksMax) return Verdict::kRefuse;
    message.bytes = header.message_bytes;
    message.chunk_bytes = header.chunk_bytes;
    message.eager = header.eager;
    message.missing = static_cast<uint32_t>(count);
    message.claim.Assign(count, kAbsent);
  } else if (message.bytes != header.message_bytes || (message.claim.size() > 1 && message.chunk_bytes != header.chunk_bytes)) {
    return Verdict::kRefuse;
  }
  if (header.index >= message.claim.size() || header.bytes != ChunkLength(message.bytes, message.chunk_bytes, header.index))
    return Verdict::kRefuse;
  PathEpoch& claim = message.claim[header.index];
  if (claim == kPlaced && IsActive(Mutant::kDoubleDelivery)) {
    claim = kAbsent;
    ++message.missing;
  }
  if (claim == kPlaced || (claim != kAbsent && (claim & kLanded) != 0)) return Verdict::kDiscard;
  if (claim != kAbsent) return Verdict::kRefuse;  // another path may still write it: replayed before its fence
  claim = epoch;
  // A buffer of no bytes may have no address; a destination has one.
  static std::byte nowhere;
  *destination = header.bytes == 0 ? &nowhere : message.to.data + header.offset();
  return Verdict::kPlace;
}

bool RecvLedger::Finish(MessageId id, uint32_t index, PathEpoch epoch) {
  if (IsActive(Mutant::kEarlyDone) && id < placed_through_) return false;
  R2CC_CHECK(id >= placed_through_);
  if (const auto it = staged_.find(id); it != staged_.end()) {
    R2CC_CHECK(it->second.claim == epoch);
    it->second.claim = kPlaced;
    Unstage(id);
    return Advance();
  }
  R2CC_CHECK(id < posted_through());
  Message& message = messages_[id - placed_through_];
  R2CC_CHECK(index < message.claim.size() && message.claim[index] == epoch);
  // No bytes have nowhere to be flushed from.
  const bool lands = message.to.is_device() && message.bytes > 0;
  message.claim[index] = lands ? static_cast<PathEpoch>(kLanded | epoch) : kPlaced;
  message.unflushed += lands ? 1 : 0;
  --message.missing;
  if (lands && message.missing == 0) BeginFlushes(id, &message);
  return Advance();
}

void RecvLedger::BeginFlushes(MessageId id, Message* message) {
  std::set<PathEpoch> paths;
  for (const PathEpoch claim : message->claim)
    if (claim != kPlaced) paths.insert(static_cast<PathEpoch>(claim & ~kLanded));
  ++message->round;
  if (IsActive(Mutant::kFlushLeftOut) && paths.size() > 1) {
    for (PathEpoch& claim : message->claim) {
      if (claim != (kLanded | *paths.begin())) continue;
      claim = kPlaced;
      --message->unflushed;
    }
    paths.erase(paths.begin());
  }
  for (const PathEpoch path : paths) flushes_.push_back({{flow_, id, message->round}, path, message->to});
}

bool RecvLedger::Flushed(const FlushName& name, PathEpoch epoch) {
  if (name.message < placed_through_ || name.message >= posted_through()) return false;
  Message& message = messages_[name.message - placed_through_];
  if (message.round != name.round) return false;
  for (PathEpoch& claim : message.claim) {
    if (claim != (kLanded | epoch)) continue;
    claim = kPlaced;
    --message.unflushed;
  }
  return Advance();
}

bool RecvLedger::Advance() {
  const MessageId before = placed_through_;
  const auto whole = [](const Message& message) {
    const bool early = IsActive(Mutant::kEarlyDone) && message.claim.size() > 1 && message.missing == 1;
    return !message.claim.empty() && (message.missing == 0 || early) && message.unflushed == 0;
  };
  while (!messages_.empty() && whole(messages_.front())) {
    sizes_[placed_through_ % kSizesKept] = messages_.front().bytes;
    last_eager_ = messages_.front().eager;
    messages_.pop_front();
    ++placed_through_;
    if (!last_eager_) awaited_through_ = placed_through_;
  }
  return placed_through_ != before;
}

void RecvLedger::Drop(PathEpoch epoch) {
  if (IsActive(Mutant::kClaimKept)) return;
  for (Message& message : messages_)
    for (PathEpoch& claim : message.claim) {
      if (claim == epoch) claim = kAbsent;
      if (claim != (kLanded | epoch)) continue;
      claim = kAbsent;
      ++message.missing;
      --message.unflushed;
      // More may come by paths that are being flushed now.
      ++message.round;
    }
  // The memory stays until the chunk is replayed, which is after whoever still reads into it was made to stop.
  for (auto& [id, staged] : staged_)
    if (staged.claim == epoch) staged.claim = kAbsent;
}

uint64_t RecvLedger::SizeOf(MessageId id) const {
  R2CC_CHECK(id < placed_through_ && placed_through_ - id <= kSizesKept);
  return sizes_[id % kSizesKept];
}

FlowArrivals RecvLedger::Arrivals() const {
  FlowArrivals arrivals{flow_, placed_through_, {}};
  for (size_t i = 0; i < messages_.size(); ++i) {
    const Message& message = messages_[i];
    if (message.claim.empty() || message.missing == message.claim.size() || IsActive(Mutant::kDoubleDelivery)) continue;
    MessageArrivals partial{placed_through_ + i, message.chunk_bytes, std::vector<bool>(message.claim.size())};
    for (size_t chunk = 0; chunk < message.claim.size(); ++chunk) partial.placed[chunk] = message.claim[chunk] == kPlaced;
    arrivals.partial.push_back(std::move(partial));
  }
  for (const auto& [id, staged] : staged_)
    if (staged.claim == kPlaced) arrivals.partial.push_back({id, staged.chunk_bytes, {true}});
  return arrivals;
}

std::vector<BufferPlace> RecvLedger::Places(const RegionGenerations& generations) const {
  std::vector<BufferPlace> places;
  for (size_t i = 0; i < messages_.size(); ++i) {
    const Buffer& to = messages_[i].to;
    const uint32_t known = to.memory == nullptr ? 0 : generations.GenerationOf(to.memory->id);
    if (known == 0) continue;
    places.resize(messages_.size());
    places[i] = {to.memory->id, known, static_cast<uint64_t>(to.data - to.memory->base)};
  }
  return places;
}

std::vector<uint64_t> RecvLedger::Capacities() const {
  std::vector<uint64_t> capacities;
  capacities.reserve(messages_.size());
  for (const Message& message : messages_) capacities.push_back(message.capacity_bytes);
  return capacities;
}

}  // namespace r2cc::net
