#include "observe/producer/host_producer.h"

#include <poll.h>

#include <algorithm>
#include <cstring>

#include "observe/record/mutant.h"

namespace r2cc::observe {
namespace {

constexpr size_t kLayoutsMax = 1024;
// A cursor in shared memory gives no event: it is looked at so often.
constexpr Nanos kLookAgain = 200'000;

uint64_t IndexAt(const RowChoice& rows, uint64_t i) {
  if (rows.index_bytes == 8) {
    uint64_t index;
    std::memcpy(&index, static_cast<const uint8_t*>(rows.indices) + i * 8, 8);
    return index;
  }
  uint32_t index;
  std::memcpy(&index, static_cast<const uint8_t*>(rows.indices) + i * 4, 4);
  return index;
}

}  // namespace

std::unique_ptr<HostProducer> HostProducer::Open(const ProducerOptions& options, const Clock* clock, std::string* error) {
  if (options.every == 0 || options.phases == 0 || options.phases > 3) {
    *error = "no step would ever be wanted: every is " + std::to_string(options.every) + ", phases are " + std::to_string(options.phases);
    return nullptr;
  }
  std::unique_ptr<RunMemory> memory = RunMemory::Make(options.run, options.rank, options.ring_bytes, error);
  if (memory == nullptr) return nullptr;
  return std::unique_ptr<HostProducer>(new HostProducer(options, clock, std::move(memory)));
}

HostProducer::HostProducer(const ProducerOptions& options, const Clock* clock, std::unique_ptr<RunMemory> memory)
    : options_(options),
      clock_(clock),
      memory_(std::move(memory)),
      writer_(memory_->control(), memory_->ring(), memory_->cursors(), options.reader_timeout_ns) {
  host_words_.groups = ~uint64_t{0};
  host_words_.every = options.every;
  host_words_.phases = options.phases;
  words_ = host_words_;
}

HostProducer::~HostProducer() { Close(); }

bool HostProducer::AddLayout(Layout layout, uint32_t* id, std::string* error) {
  layout.id = static_cast<uint32_t>(layouts_.size());
  layout.rank = options_.rank;
  *error = Check(layout);
  if (!error->empty()) return false;
  const uint64_t bytes = SlotsOf(layout, ~uint64_t{0}, layout.rows_most)->record_bytes + sizeof(RingFrame);
  // With a pad between them.
  if (bytes > writer_.bytes() / 2) {
    *error = "a step has up to " + std::to_string(bytes) + " bytes and must fit twice into the host's ring of " +
             std::to_string(writer_.bytes()) + ": raise host_mib, or take fewer taps, rows, or statistics instead of copies";
    return false;
  }
  if (layouts_.size() >= kLayoutsMax || !writer_.AddLayout(layout)) {
    *error = "there are " + std::to_string(layouts_.size()) + " layouts already, and no room for another";
    return false;
  }
  *id = layout.id;
  layouts_.push_back(std::make_unique<Layout>(std::move(layout)));
  return true;
}

uint8_t* HostProducer::ReserveWithin(uint64_t bytes) {
  const Nanos begin = clock_->Now();
  for (Nanos now = begin;; now = clock_->Now()) {
    uint8_t* const to = writer_.Reserve(bytes, now);
    if (to != nullptr || now - begin >= options_.block_ns) return to;
    const timespec pause{0, static_cast<long>(std::min(kLookAgain, options_.block_ns - (now - begin)))};
    ppoll(nullptr, 0, &pause, nullptr);
  }
}

HostProducer::Began HostProducer::Begin(uint32_t layout, Phase phase, const RowChoice& rows, std::string* error) {
  if (closed_ || layout >= layouts_.size()) {
    *error = closed_ ? "the producer is closed" : "there is no layout " + std::to_string(layout);
    return Began::kRefused;
  }
  Abandon();
  const Layout& its = *layouts_[layout];
  if (rows.count > its.rows_most || (rows.indices != nullptr && rows.index_bytes != 4 && rows.index_bytes != 8)) {
    *error = std::to_string(rows.count) + " rows, the layout has at most " + std::to_string(its.rows_most) + "; indices have 4 or 8 bytes";
    return Began::kRefused;
  }
  if (!Wanted(counts_.Steps(), phase, words_)) {
    Counted(&Counts::unwanted);
    return Began::kNotTaken;
  }
  Step step{};
  step.layout = &its;
  step.slots = *SlotsOf(its, words_.groups, static_cast<uint32_t>(rows.count));
  step.rows.count = rows.count;
  if (rows.indices != nullptr) {
    for (uint64_t i = 0; i < rows.count; ++i) {
      step.indices.push_back(IndexAt(rows, i));
      step.index_greatest = std::max(step.index_greatest, step.indices.back());
    }
  } else if (rows.count != 0) {
    step.index_greatest = rows.count - 1;
  }
  step.to = ReserveWithin(step.slots.record_bytes);
  if (step.to == nullptr) {
    if (IsActive(TapMutant::kDropUncounted)) return Began::kNotTaken;
    Counted(&Counts::dropped_host);
    return Began::kNotTaken;
  }
  step.header = {kRecordMagic,
                 kRecordVersion,
                 static_cast<uint8_t>(RecordKind::kRecord),
                 0,
                 counts_.Steps(),
                 counts_.records + counts_.dropped_host,
                 step.slots.record_bytes,
                 words_.groups,
                 0,
                 its.id,
                 static_cast<uint32_t>(rows.count),
                 0,
                 1,
                 static_cast<uint32_t>(counts_.unwanted)};
  step.tags_copied.resize(its.tags.size());
  step.taps_copied.resize(its.taps.size());
  step_ = std::move(step);
  // As one value, after the move: the list names the vector's memory.
  step_.rows.indices = rows.indices == nullptr ? 0 : reinterpret_cast<uint64_t>(step_.indices.data());
  return Began::kTaken;
}

bool HostProducer::Wants(bool is_tag, size_t index) const {
  if (step_.to == nullptr) return false;
  const std::vector<bool>& copied = is_tag ? step_.tags_copied : step_.taps_copied;
  return index < copied.size() && !copied[index] && (is_tag ? step_.slots.tags : step_.slots.taps)[index].offset != 0;
}

bool HostProducer::Copy(bool is_tag, size_t index, const TensorSource& source, std::string* error) {
  if (!Wants(is_tag, index)) return true;
  const Tap& tap = (is_tag ? step_.layout->tags : step_.layout->taps)[index];
  TapWork work;
  bool sound = MakeTapWork(tap, reinterpret_cast<uint64_t>(source.data), source.shape, source.strides, &work, error);
  if (sound && tap.rows && step_.rows.count != 0 && step_.index_greatest >= work.rows) {
    *error =
        tap.name + ": it has " + std::to_string(work.rows) + " rows, and row " + std::to_string(step_.index_greatest) + " is asked for";
    sound = false;
  }
  if (sound && source.data == nullptr && OutputBytes(work, tap.rows ? step_.rows.count : 1) != 0 && work.RowBytes() != 0) {
    *error = tap.name + ": there is no tensor";
    sound = false;
  }
  if (!sound) {
    Abandon();
    return false;
  }
  const Slot& slot = (is_tag ? step_.slots.tags : step_.slots.taps)[index];
  HostOps ops;
  GatherTap(&ops, work, tap.rows ? step_.rows : RowList{}, reinterpret_cast<uint64_t>(step_.to + slot.offset));
  (is_tag ? step_.tags_copied : step_.taps_copied)[index] = true;
  return true;
}

bool HostProducer::Hash(const TapWork& work, uint64_t* hash, std::string*) {
  HostOps ops;
  RowList all;
  all.count = work.rows;
  GatherTap(&ops, work, all, reinterpret_cast<uint64_t>(hash));
  return true;
}

bool HostProducer::Finish(std::string* error) {
  if (step_.to == nullptr) return true;
  uint64_t end = sizeof(RecordHeader);
  for (const bool is_tag : {true, false}) {
    const std::vector<Slot>& slots = is_tag ? step_.slots.tags : step_.slots.taps;
    for (size_t i = 0; i < slots.size(); ++i) {
      if (Wants(is_tag, i)) {
        *error =
            (is_tag ? step_.layout->tags : step_.layout->taps)[i].name + ": it was not copied in step " + std::to_string(step_.header.step);
        Abandon();
        return false;
      }
      if (slots[i].offset == 0) continue;
      // Nothing of the former content is left.
      std::memset(step_.to + end, 0, slots[i].offset - end);
      end = slots[i].offset + slots[i].bytes;
    }
  }
  RecordHeader& header = step_.header;
  const RecordTrailer trailer{kTrailerMagic, 0, header.step, header.sequence, header.bytes};
  header.time_ns = static_cast<uint64_t>(clock_->Now());
  std::memset(step_.to + end, 0, header.bytes - sizeof(trailer) - end);
  std::memcpy(step_.to, &header, sizeof(header));
  if (!IsActive(TapMutant::kNoTrailer)) std::memcpy(step_.to + header.bytes - sizeof(trailer), &trailer, sizeof(trailer));
  step_.to = nullptr;
  Counted(&Counts::records);
  writer_.Commit(static_cast<Nanos>(header.time_ns), counts_.dropped_host);
  return true;
}

void HostProducer::Abandon() {
  if (step_.to == nullptr) return;
  step_.to = nullptr;
  writer_.Abandon();
  Counted(&Counts::unwanted);
}

void HostProducer::Counted(uint64_t Counts::*what) {
  ++(counts_.*what);
  writer_.Publish(counts_);
  words_ = host_words_;
}

void HostProducer::Close() {
  if (closed_) return;
  Abandon();
  closed_ = true;
  writer_.Close("");
}

}  // namespace r2cc::observe
