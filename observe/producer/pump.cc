#include "observe/producer/pump.h"

#include <algorithm>
#include <cstring>

namespace r2cc::observe {

bool Pump::Turn(Nanos now) {
  if (!failure_.empty()) return false;
  bool moved = false;
  // In this order: a stub that has its outcome and is not among the records was not taken.
  const uint64_t outcome = LoadAcquire(&published_->held);
  const uint64_t records = LoadAcquire(&published_->records);
  for (; next_ < records && items_.size() < kOpenMax && failure_.empty() && Take(next_, now); ++next_) moved = true;
  moved = (failure_.empty() && MovePieces()) || moved;
  while (failure_.empty() && !items_.empty()) {
    Item& oldest = items_.front();
    const bool whole =
        IsActive(TapMutant::kCommittedBeforeCopied) ||
        std::all_of(oldest.pieces.begin(), oldest.pieces.end(), [](const Piece& piece) { return piece.state == Piece::kDone; });
    if (!whole) break;
    End(&oldest, now);
    items_.pop_front();
    moved = true;
  }
  ForgetUntaken(outcome, records);
  return moved;
}

bool Pump::Take(uint64_t sequence, Nanos now) {
  Item item{};
  item.entry = published_->directory[sequence % kDirectoryEntries];
  item.sequence = sequence;
  const DirectoryEntry& entry = item.entry;
  if (entry.hold != 0) {
    const auto held = IsActive(TapMutant::kHoldByOrder) ? holds_.begin() : holds_.find(entry.hold);
    if (held == holds_.end()) {
      Fail("a stub names hold " + std::to_string(entry.hold) + ", which is not there");
      return false;
    }
    item.bytes = held->second.slots.record_bytes;
  } else {
    if (entry.bytes < kRecordBytesLeast || entry.bytes > ring_bytes_ || entry.begin % ring_bytes_ + entry.bytes > ring_bytes_) {
      Fail("the device published a record of " + std::to_string(entry.bytes) + " bytes at " + std::to_string(entry.begin));
      return false;
    }
    item.bytes = entry.bytes;
  }
  item.to = host_->Reserve(item.bytes, now);
  if (item.to == nullptr && block_ns_ != 0) {
    if (!waits_since_) waits_since_ = now;
    if (now - *waits_since_ < block_ns_) return false;
  }
  waits_since_.reset();
  if (entry.hold != 0) {
    const auto held = IsActive(TapMutant::kHoldByOrder) ? holds_.begin() : holds_.find(entry.hold);
    item.held = std::move(held->second);
    holds_.erase(held);
  }
  if (item.to == nullptr) {
    // Counted in its order, as records that are open come before it.
  } else if (entry.hold == 0) {
    AddPieces(&item, ring_ + entry.begin % ring_bytes_, 0, entry.bytes);
  } else {
    for (size_t i = 0; i < item.held.tags.size(); ++i)
      AddPieces(&item, item.held.tags[i], item.held.slots.tags[i].offset, item.held.slots.tags[i].bytes);
    for (size_t i = 0; i < item.held.taps.size(); ++i)
      AddPieces(&item, item.held.taps[i], item.held.slots.taps[i].offset, item.held.slots.taps[i].bytes);
  }
  items_.push_back(std::move(item));
  return true;
}

void Pump::AddPieces(Item* item, uint64_t from, uint64_t offset, uint64_t bytes) {
  for (uint64_t at = 0; at < bytes; at += kCopyPieceBytes)
    item->pieces.push_back({from + at, std::min(kCopyPieceBytes, bytes - at), item->to + offset + at});
}

bool Pump::MovePieces() {
  bool moved = false;
  for (Item& item : items_) {
    for (Piece& piece : item.pieces) {
      if (piece.state == Piece::kUnderWay) {
        const CopyEngine::State state = engine_->StateOf(piece.ticket);
        if (state == CopyEngine::State::kFailed) {
          Fail("a copy from the device failed: " + engine_->failure());
          return true;
        }
        if (state == CopyEngine::State::kDone) {
          piece.state = Piece::kDone;
          --under_way_;
          moved = true;
        }
      }
      if (piece.state != Piece::kWaits || under_way_ >= kPiecesMax) continue;
      if (!engine_->Start(piece.from, piece.to, piece.bytes, &piece.ticket)) {
        Fail("the device refuses to copy: " + engine_->failure());
        return true;
      }
      piece.state = Piece::kUnderWay;
      ++under_way_;
      moved = true;
      if (IsActive(TapMutant::kSlotFreedEarly)) Free(item.entry, item.sequence);
    }
  }
  return moved;
}

void Pump::End(Item* item, Nanos now) {
  const DirectoryEntry& entry = item->entry;
  if (item->to == nullptr) {
    if (!IsActive(TapMutant::kDropUncounted)) ++counts_.dropped_host;
  } else {
    if (entry.hold != 0) WriteEnds(*item);
    if (!CheckCopied(*item)) return;
    ++counts_.records;
    counts_.unwanted = entry.unwanted;
    counts_.dropped_device = entry.step - item->sequence - entry.unwanted;
  }
  host_->Publish(counts_);
  if (item->to != nullptr) host_->Commit(now, counts_.dropped_host);
  Free(entry, item->sequence);
  if (entry.hold != 0) ForgetHolds(entry.hold);
}

bool Pump::CheckCopied(const Item& item) {
  if (IsActive(TapMutant::kCommittedBeforeCopied)) return true;
  RecordHeader header;
  RecordTrailer trailer;
  std::memcpy(&header, item.to, sizeof(header));
  std::memcpy(&trailer, item.to + item.bytes - sizeof(trailer), sizeof(trailer));
  const char* wrong = FindError(header, trailer, item.bytes);
  if (wrong == nullptr && (header.step != item.entry.step || header.sequence != item.sequence)) wrong = "another step than its entry";
  if (wrong != nullptr) Fail("the record of step " + std::to_string(item.entry.step) + " has " + wrong);
  return wrong == nullptr;
}

void Pump::WriteEnds(const Item& item) {
  const RecordHeader header{kRecordMagic,
                            kRecordVersion,
                            static_cast<uint8_t>(RecordKind::kRecord),
                            0,
                            item.entry.step,
                            item.sequence,
                            item.bytes,
                            item.held.groups,
                            0,
                            item.held.layout,
                            item.held.rows,
                            0,
                            1,
                            static_cast<uint32_t>(item.entry.unwanted)};
  const RecordTrailer trailer{kTrailerMagic, 0, header.step, header.sequence, header.bytes};
  // Nothing of the ring's former content is left between tensors.
  uint64_t end = sizeof(header);
  for (const std::vector<Slot>* const slots : {&item.held.slots.tags, &item.held.slots.taps})
    for (const Slot& slot : *slots) {
      if (slot.offset == 0) continue;
      std::memset(item.to + end, 0, slot.offset - end);
      end = slot.offset + slot.bytes;
    }
  std::memset(item.to + end, 0, item.bytes - sizeof(trailer) - end);
  std::memcpy(item.to, &header, sizeof(header));
  std::memcpy(item.to + item.bytes - sizeof(trailer), &trailer, sizeof(trailer));
}

void Pump::Free(const DirectoryEntry& entry, uint64_t sequence) {
  StoreRelease(&words_->tail, entry.begin + entry.bytes);
  StoreRelease(&words_->released, sequence + 1);
}

void Pump::ForgetHolds(uint64_t up_to) {
  released_hold_ = std::max(released_hold_, up_to);
  holds_.erase(holds_.begin(), holds_.upper_bound(up_to));
}

void Pump::ForgetUntaken(uint64_t outcome, uint64_t records) {
  if (failure_.empty() && items_.empty() && next_ == records && outcome > released_hold_) ForgetHolds(outcome);
}

void Pump::Fail(const std::string& cause) {
  failure_ = cause;
  StoreRelease(&words_->closed, 1);
  host_->Close(cause);
}

bool Pump::Drained() const {
  // Before the records, as in Turn().
  const uint64_t outcome = LoadAcquire(&published_->held);
  return !failure_.empty() || (items_.empty() && next_ == LoadAcquire(&published_->records) && outcome <= released_hold_);
}

void Pump::Finish() {
  if (!failure_.empty()) return;
  StoreRelease(&words_->closed, 1);
  counts_.dropped_device = LoadRelaxed(&published_->dropped);
  counts_.unwanted = LoadRelaxed(&published_->unwanted);
  host_->Publish(counts_);
  host_->Close("");
  if (!holds_.empty()) ForgetHolds(holds_.rbegin()->first);
}

}  // namespace r2cc::observe
