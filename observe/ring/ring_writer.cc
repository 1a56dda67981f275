#include "observe/ring/ring_writer.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/core/check.h"
#include "observe/admission/admission.h"

namespace r2cc::observe {

uint8_t* RingWriter::Reserve(uint64_t bytes, Nanos now) {
  R2CC_CHECK(bytes % kRecordAlignment == 0 && ring_.size() % kRecordAlignment == 0);
  const uint64_t all = bytes + sizeof(RingFrame);
  if (all > ring_.size()) return nullptr;
  const Decision place = PlaceRecord(reserved_, reserved_, all, ring_.size());
  const uint64_t end = place.begin + all;
  if (end > oldest_ + ring_.size() && !Reclaim(end - ring_.size(), now)) return nullptr;
  open_.push_back({place.pad, place.begin, all});
  reserved_ = end;
  return reinterpret_cast<uint8_t*>(FrameAt(place.begin) + 1);
}

bool RingWriter::Reclaim(uint64_t from, Nanos now) {
  uint64_t to = oldest_;
  while (to < from && to < head_) to += FrameAt(to)->bytes;
  if (to < from) return false;
  // A reader that registers stores its cursor, then looks at `reclaiming`; here it is the other way round: one of the two sees the other.
  StoreRelaxed(&control_->reclaiming, to);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  bool free = true;
  for (size_t reader = 0; reader < kReadersMax; ++reader) free = !InTheWay(reader, to, now) && free;
  if (!free) {
    StoreRelaxed(&control_->reclaiming, oldest_);
    return false;
  }
  oldest_ = to;
  StoreRelease(&control_->oldest, to);
  // Later writes are not visible without that.
  std::atomic_thread_fence(std::memory_order_release);
  return true;
}

bool RingWriter::InTheWay(size_t reader, uint64_t from, Nanos now) {
  const uint64_t word = LoadAcquire(&cursors_->cursors[reader].word);
  if (word == 0 || GenerationOf(word) != (control_->generation[reader] & 0xffff)) return false;
  const uint64_t position = PositionOf(word, oldest_);
  if (position > head_) {
    if (IsActive(TapMutant::kCursorBeyondHead)) return false;
    StoreRelaxed(&control_->lied, control_->lied + 1);
    CutOff(reader, word);
    return false;
  }
  if (position >= from) return false;
  Seen& seen = seen_[reader];
  if (seen.word != word) seen = {word, now};
  if (now - seen.since < reader_timeout_ns_) return true;
  CutOff(reader, word);
  return false;
}

void RingWriter::CutOff(size_t reader, uint64_t word) {
  StoreRelaxed(&control_->cut_off, control_->cut_off + 1);
  // The reader looks at it after it has read in place.
  StoreRelease(&control_->generation[reader], control_->generation[reader] + 1);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  __atomic_compare_exchange_n(&cursors_->cursors[reader].word, &word, 0, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

void RingWriter::Commit(Nanos arrival, uint64_t dropped_host) {
  R2CC_CHECK(!open_.empty());
  const Open next = open_.front();
  open_.pop_front();
  if (next.pad != 0) {
    RingFrame pad{};
    pad.magic = kFrameMagic;
    pad.pad = 1;
    pad.position = next.begin - next.pad;
    pad.bytes = next.pad;
    *FrameAt(pad.position) = pad;
  }
  RingFrame frame{};
  frame.magic = kFrameMagic;
  frame.position = next.begin;
  frame.bytes = next.bytes;
  frame.arrival_ns = static_cast<uint64_t>(arrival);
  frame.dropped_host = dropped_host;
  *FrameAt(next.begin) = frame;
  head_ = next.begin + next.bytes;
  StoreRelease(&control_->head, head_);
}

void RingWriter::Abandon() {
  R2CC_CHECK(!open_.empty());
  reserved_ = open_.back().begin - open_.back().pad;
  open_.pop_back();
}

bool RingWriter::AddLayout(const Layout& layout) {
  const std::vector<uint8_t> bytes = Encode(layout);
  if (bytes.size() > kLayoutsBytes - control_->layouts_end) return false;
  std::memcpy(control_->layouts + control_->layouts_end, bytes.data(), bytes.size());
  StoreRelease(&control_->layouts_end, control_->layouts_end + bytes.size());
  return true;
}

void RingWriter::Publish(const Counts& counts) {
  StoreRelaxed(&control_->records, counts.records);
  StoreRelaxed(&control_->dropped_device, counts.dropped_device);
  StoreRelaxed(&control_->dropped_host, counts.dropped_host);
  StoreRelaxed(&control_->unwanted, counts.unwanted);
}

void RingWriter::Close(const std::string& cause) {
  const size_t bytes = std::min(cause.size(), sizeof(control_->cause) - 1);
  std::memcpy(control_->cause, cause.data(), bytes);
  StoreRelease(&control_->life, static_cast<uint64_t>(cause.empty() ? Life::kClosed : Life::kFailed));
}

}  // namespace r2cc::observe
