// A producer of small records over a ring of its own, for tests of both ends.
#ifndef R2CC_OBSERVE_RING_RING_RIG_H_
#define R2CC_OBSERVE_RING_RING_RIG_H_

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>

#include "observe/ring/ring_reader.h"
#include "observe/ring/ring_writer.h"
#include "observe/ring/run_memory.h"

namespace r2cc::observe {

struct RingRig {
  static constexpr Nanos kTimeout = 100 * kNanosPerMs;

  explicit RingRig(uint64_t ring_bytes = kRingBytesLeast, const std::string& run = "rig") {
    std::string error;
    memory = RunMemory::Make(run, 0, ring_bytes, &error);
    EXPECT_NE(memory, nullptr) << error;
    writer = std::make_unique<RingWriter>(memory->control(), memory->ring(), memory->cursors(), kTimeout);
    layout.id = 1;
    layout.taps = {{"x", Operator::kCopy, Dtype::kU64, 0, true, {}}};
    layout.rows_most = 1000;
    EXPECT_TRUE(writer->AddLayout(layout));
  }
  std::unique_ptr<RingReader> Reader() { return std::make_unique<RingReader>(memory->control(), memory->ring(), memory->cursors(), 42); }

  // A record of `rows` words, each of which is the step. False: dropped.
  bool Step(uint32_t rows = 8) {
    const Slots slots = *SlotsOf(layout, 1, rows);
    uint8_t* const to = writer->Reserve(slots.record_bytes, now);
    const uint64_t step = counts.Steps();
    if (to == nullptr) {
      ++counts.dropped_host;
      writer->Publish(counts);
      return false;
    }
    RecordHeader header{};
    header.magic = kRecordMagic;
    header.version = kRecordVersion;
    header.kind = static_cast<uint8_t>(RecordKind::kRecord);
    header.step = step;
    header.sequence = counts.records + counts.dropped_host;
    header.bytes = slots.record_bytes;
    header.groups = 1;
    header.layout = layout.id;
    header.rows = rows;
    header.parts = 1;
    const RecordTrailer trailer{kTrailerMagic, 0, header.step, header.sequence, header.bytes};
    std::memcpy(to, &header, sizeof(header));
    for (uint32_t i = 0; i < rows; ++i) std::memcpy(to + slots.taps[0].offset + i * 8, &step, 8);
    std::memcpy(to + slots.record_bytes - sizeof(trailer), &trailer, sizeof(trailer));
    ++counts.records;
    writer->Publish(counts);
    writer->Commit(now, counts.dropped_host);
    return true;
  }
  // The step of a view whose bytes are right; ~0: they are not.
  static uint64_t StepOf(const RecordView& view) {
    for (uint32_t i = 0; i < view.header.rows; ++i)
      if (std::memcmp(view.bytes.data() + view.slots->taps[0].offset + i * 8, &view.header.step, 8) != 0) return ~uint64_t{0};
    return view.header.step;
  }

  std::unique_ptr<RunMemory> memory;
  std::unique_ptr<RingWriter> writer;
  Layout layout;
  Counts counts;
  Nanos now = kNanosPerSecond;
};

}  // namespace r2cc::observe

#endif  // R2CC_OBSERVE_RING_RING_RIG_H_
