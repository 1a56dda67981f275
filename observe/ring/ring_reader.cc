#include "observe/ring/ring_reader.h"

#include <atomic>
#include <cstring>

#include "base/core/shared_memory.h"

namespace r2cc::observe {
namespace {

// A reader asks for many combinations at most if a producer means no good.
constexpr size_t kSlotsKept = 256;
// A record that was overwritten while it was read is followed by another; a producer that means no good makes that go on.
constexpr int kTriesMax = 1000;

template <typename T>
T CopyOf(const uint8_t* from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

}  // namespace

RingReader::RingReader(const ControlMemory* control, std::span<const uint8_t> ring, CursorsMemory* cursors, uint64_t own_pid)
    : control_(control), ring_(ring), cursors_(cursors), own_pid_(own_pid), position_(LoadAcquire(&control->oldest)), next_(position_) {}

bool RingReader::Register() {
  if (registered() || cursors_ == nullptr) return registered();
  for (size_t place = 0; place < kReadersMax; ++place) {
    CursorsMemory::Cursor& cursor = cursors_->cursors[place];
    const uint64_t generation = LoadAcquire(&control_->generation[place]);
    const uint64_t word = CursorWord(generation, next_);
    uint64_t free = 0;
    if (word == 0 || !__atomic_compare_exchange_n(&cursor.word, &free, word, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) continue;
    StoreRelaxed(&cursor.pid, own_pid_);
    place_ = place;
    generation_ = generation;
    word_ = word;
    std::atomic_thread_fence(std::memory_order_seq_cst);
    // The producer may have begun to overwrite before it saw the cursor.
    const uint64_t from = LoadRelaxed(&control_->reclaiming);
    if (from > next_) {
      next_ = from;
      Release();
    }
    return registered();
  }
  return false;
}

void RingReader::Unregister() {
  if (registered()) __atomic_compare_exchange_n(&cursors_->cursors[place_].word, &word_, 0, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
  word_ = 0;
}

bool RingReader::StillRegistered() const { return LoadRelaxed(&control_->generation[place_]) == generation_; }

bool RingReader::StillThere(uint64_t position) const {
  std::atomic_thread_fence(std::memory_order_acquire);
  return LoadRelaxed(&control_->oldest) <= position;
}

void RingReader::NoticeCutOff() {
  if (!registered() || StillRegistered()) return;
  word_ = 0;
  ++times_cut_off_;
}

bool RingReader::Release() {
  position_ = next_;
  if (!registered()) return true;
  std::atomic_thread_fence(std::memory_order_acquire);
  uint64_t expected = word_;
  const uint64_t word = CursorWord(generation_, position_);
  const bool moved =
      __atomic_compare_exchange_n(&cursors_->cursors[place_].word, &expected, word, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
  if (moved && StillRegistered()) {
    word_ = word;
    return true;
  }
  word_ = 0;
  ++times_cut_off_;
  return false;
}

RingReader::Found RingReader::Broken(const std::string& what) {
  error_ = what;
  next_ = LoadAcquire(&control_->head) / kRecordAlignment * kRecordAlignment;
  Release();
  return Found::kBroken;
}

RingReader::Found RingReader::Next(RecordView* view) {
  NoticeCutOff();
  Release();
  for (int tries = 0; tries < kTriesMax; ++tries) {
    NoticeCutOff();
    // Before the head: what was committed before it closed is seen.
    const bool closed = life() != Life::kOpen || assume_closed_;
    const uint64_t oldest = LoadAcquire(&control_->oldest);
    const uint64_t head = LoadAcquire(&control_->head);
    if (LoadRelaxed(&control_->oldest) != oldest) continue;
    if (head % kRecordAlignment != 0 || oldest % kRecordAlignment != 0 || head - oldest > ring_.size() || head < position_)
      return Broken("the ring's head, " + std::to_string(head) + ", contradicts its oldest record, " + std::to_string(oldest));
    if (position_ < oldest) {
      next_ = oldest;
      Release();
    }
    if (position_ == head) return closed ? End(view) : Found::kNothing;
    const Found found = Take(view);
    if (found != Found::kNothing) return found;
    if (next_ != position_) tries = 0;  // a pad
    Release();
  }
  // No producer is as fast as that; but a reader on a busy machine may be as slow.
  return Found::kNothing;
}

RingReader::Found RingReader::Take(RecordView* view) {
  const uint64_t at = position_ % ring_.size();
  const RingFrame frame = CopyOf<RingFrame>(ring_.data() + at);
  if (!StillThere(position_)) return Found::kNothing;
  const uint64_t left = ring_.size() - at;
  if (frame.magic != kFrameMagic || frame.position != position_ || frame.pad > 1 || frame.bytes % kRecordAlignment != 0 ||
      frame.bytes < sizeof(RingFrame) || frame.bytes > left || (frame.pad == 1 && frame.bytes != left) ||
      (frame.pad == 0 && frame.bytes < sizeof(RingFrame) + kRecordBytesLeast))
    return Broken("at " + std::to_string(position_) + " of the ring is no record");
  if (frame.pad == 1) {
    next_ = position_ + frame.bytes;
    return Found::kNothing;
  }
  const std::span<const uint8_t> bytes = Bytes(position_ + sizeof(RingFrame), frame.bytes - sizeof(RingFrame));
  if (bytes.empty()) return Found::kNothing;
  const auto header = CopyOf<RecordHeader>(bytes.data());
  const auto trailer = CopyOf<RecordTrailer>(bytes.data() + bytes.size() - sizeof(RecordTrailer));
  const std::string label = "record at " + std::to_string(position_) + ": ";
  const char* wrong = FindError(header, trailer, bytes.size());
  if (wrong == nullptr && header.kind != static_cast<uint8_t>(RecordKind::kRecord)) wrong = "a kind that is not in a ring";
  if (wrong != nullptr) return Broken(label + wrong);
  Known* const known = LayoutOf(header.layout);
  if (known == nullptr)
    return Broken(label + "layout " + std::to_string(header.layout) + (error_.empty() ? " is not there" : ": " + error_));
  const Slots* const slots = SlotsFor(known, header.groups, header.rows);
  if (slots == nullptr || slots->record_bytes != header.bytes)
    return Broken(label + "its length is not that of its layout, groups and rows");
  if (!account_.Add(header, frame.dropped_host, &view->gap)) return Broken(label + "its counts contradict those before");
  next_ = position_ + frame.bytes;
  view->header = header;
  view->arrival_ns = frame.arrival_ns;
  view->layout = &known->layout;
  view->slots = slots;
  view->bytes = bytes;
  return Found::kRecord;
}

std::span<const uint8_t> RingReader::Bytes(uint64_t position, uint64_t bytes) {
  const std::span<const uint8_t> in_place = ring_.subspan(position % ring_.size(), bytes);
  if (registered()) return StillRegistered() ? in_place : std::span<const uint8_t>();
  copy_.resize(bytes);
  std::memcpy(copy_.data(), in_place.data(), bytes);
  return StillThere(position_) ? std::span<const uint8_t>(copy_) : std::span<const uint8_t>();
}

RingReader::Known* RingReader::LayoutOf(uint32_t id) {
  error_.clear();
  auto found = layouts_.find(id);
  const uint64_t end = LoadAcquire(&control_->layouts_end);
  while (found == layouts_.end() && layouts_read_ + 8 <= end && end <= kLayoutsBytes) {
    // Copied before it is judged: its own length first.
    const auto length = CopyOf<uint32_t>(control_->layouts + layouts_read_ + 4);
    if (length < 8 || length % 8 != 0 || length > end - layouts_read_) {
      error_ = "what says where it ends makes no sense";
      return nullptr;
    }
    const std::vector<uint8_t> bytes(control_->layouts + layouts_read_, control_->layouts + layouts_read_ + length);
    Known known;
    if (!Decode(bytes, &known.layout, &error_)) return nullptr;
    layouts_read_ += length;
    const uint32_t its = known.layout.id;
    found = layouts_.emplace(its, std::move(known)).first;
    if (its != id) found = layouts_.find(id);
  }
  return found == layouts_.end() ? nullptr : &found->second;
}

const Slots* RingReader::SlotsFor(Known* known, uint64_t groups, uint32_t rows) {
  const auto key = std::make_pair(groups, rows);
  const auto found = known->slots.find(key);
  if (found != known->slots.end()) return &found->second;
  std::optional<Slots> slots = SlotsOf(known->layout, groups, rows);
  if (!slots) return nullptr;
  if (known->slots.size() >= kSlotsKept) known->slots.clear();
  return &known->slots.emplace(key, std::move(*slots)).first->second;
}

RingReader::Found RingReader::End(RecordView* view) {
  if (ended_) {
    *view = {};
    return Found::kEnd;
  }
  RecordHeader closing{};
  closing.kind = static_cast<uint8_t>(RecordKind::kClosing);
  const uint64_t dropped_host = LoadRelaxed(&control_->dropped_host), unwanted = LoadRelaxed(&control_->unwanted);
  closing.sequence = LoadRelaxed(&control_->records) + dropped_host;
  closing.step = closing.sequence + LoadRelaxed(&control_->dropped_device) + unwanted;
  closing.unwanted = static_cast<uint32_t>(unwanted);
  *view = {};
  // One that was killed may have been in the midst of its counts.
  if (!account_.Add(closing, dropped_host, &view->gap) && !assume_closed_) {
    ended_ = true;
    return Broken("the producer's last counts contradict its records");
  }
  view->header = closing;
  ended_ = true;
  return Found::kEnd;
}

Life RingReader::life() const {
  const uint64_t life = LoadAcquire(&control_->life);
  return life > static_cast<uint64_t>(Life::kFailed) ? Life::kFailed : static_cast<Life>(life);
}

std::string RingReader::Cause() const {
  char cause[sizeof(control_->cause)];
  std::memcpy(cause, control_->cause, sizeof(cause));
  std::string text(cause, strnlen(cause, sizeof(cause)));
  for (char& c : text)
    if (c < ' ' || c > '~') c = '?';
  return text;
}

}  // namespace r2cc::observe
