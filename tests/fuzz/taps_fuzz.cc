// Tensor taps' shared memory: a producer that writes anything anywhere in ring, frames, layouts and positions, and readers whose cursors
// are anybody's. The reader gives no byte outside of the ring, and the writer goes on.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <memory>
#include <span>
#include <string>

#include "base/core/check.h"
#include "observe/record/layout.h"
#include "observe/ring/ring_reader.h"
#include "observe/ring/ring_writer.h"
#include "observe/ring/run_memory.h"
#include "tests/fuzz/input.h"

namespace {

using namespace r2cc::observe;  // NOLINT

constexpr uint64_t kRingBytes = 4096;

void CheckView(const RecordView& view, std::span<const uint8_t> ring) {
  R2CC_CHECK(view.layout != nullptr && view.slots != nullptr && view.header.bytes == view.bytes.size());
  R2CC_CHECK(view.bytes.size() <= ring.size());
  for (const auto* slots : {&view.slots->tags, &view.slots->taps})
    for (const Slot& slot : *slots) R2CC_CHECK(slot.offset + slot.bytes <= view.bytes.size());
  // All of it can be read.
  uint64_t sum = 0;
  for (uint8_t byte : view.bytes) sum += byte;
  R2CC_CHECK(sum <= 255 * view.bytes.size());
}

Layout SmallLayout() {
  Layout layout;
  layout.taps = {{"a", Operator::kCopy, Dtype::kU64, 0, true, {}}, {"b", Operator::kHash, Dtype::kF32, 1, false, {3}}};
  layout.rows_most = 64;
  return layout;
}

void Step(RingWriter* writer, Counts* counts, r2cc::fuzz::Input* input) {
  const auto rows = static_cast<uint32_t>(input->Below(65));
  const Slots slots = *SlotsOf(SmallLayout(), 3, rows);
  uint8_t* const to = writer->Reserve(slots.record_bytes, static_cast<r2cc::Nanos>(input->Take<uint16_t>()));
  if (to == nullptr) {
    ++counts->dropped_host;
    return;
  }
  const RecordHeader header{kRecordMagic,
                            kRecordVersion,
                            1,
                            0,
                            counts->Steps(),
                            counts->records + counts->dropped_host,
                            slots.record_bytes,
                            3,
                            0,
                            0,
                            rows,
                            0,
                            1,
                            0};
  const RecordTrailer trailer{kTrailerMagic, 0, header.step, header.sequence, header.bytes};
  std::memcpy(to, &header, sizeof(header));
  std::memcpy(to + header.bytes - sizeof(trailer), &trailer, sizeof(trailer));
  ++counts->records;
  writer->Publish(*counts);
  writer->Commit(0, counts->dropped_host);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  r2cc::fuzz::Input input(data, size);
  Layout decoded;
  std::string error;
  if (input.TakeBool() && Decode(input.rest(), &decoded, &error)) R2CC_CHECK(Check(decoded).empty());
  static const std::unique_ptr<ControlMemory> control = std::make_unique<ControlMemory>();
  std::memset(static_cast<void*>(control.get()), 0, offsetof(ControlMemory, layouts) + 4096);
  CursorsMemory cursors{};
  alignas(64) uint8_t ring[kRingBytes] = {};
  for (uint64_t& generation : control->generation) generation = 1;
  RingWriter writer(control.get(), ring, &cursors, 1000);
  writer.AddLayout(SmallLayout());
  RingReader registered(control.get(), ring, &cursors, 1), copies(control.get(), ring, nullptr, 2);
  Counts counts;
  bool hostile = false;  // from then on the producer does nothing of its own: its memory is another's
  uint64_t* const words[] = {&control->head,         &control->oldest,   &control->reclaiming,
                             &control->life,         &control->records,  &control->dropped_device,
                             &control->dropped_host, &control->unwanted, &control->layouts_end};
  for (int step = 0; step < 64 && !input.empty(); ++step) {
    switch (input.Below(8)) {
      case 0:
        hostile = true;
        *words[input.Below(std::size(words))] = input.TakeNumber();
        break;
      case 1: {
        hostile = true;
        const size_t at = input.Take<uint16_t>() % kRingBytes;
        const std::span<const uint8_t> bytes = input.TakeBytes(std::min<size_t>(64, kRingBytes - at));
        if (!bytes.empty()) std::memcpy(ring + at, bytes.data(), bytes.size());
        break;
      }
      case 2: {
        hostile = true;
        const std::span<const uint8_t> bytes = input.TakeBytes(32);
        const size_t at = input.Take<uint8_t>();
        if (!bytes.empty()) std::memcpy(control->layouts + at, bytes.data(), bytes.size());
        break;
      }
      // Cursors are anybody's, and the producer must live with them.
      case 3: cursors.cursors[input.Below(kReadersMax)].word = input.TakeNumber(); break;
      case 4: registered.Register(); break;
      case 5:
      case 6:
        if (!hostile) Step(&writer, &counts, &input);
        break;
      default: {
        RingReader& reader = input.TakeBool() ? registered : copies;
        RecordView view;
        for (uint64_t i = input.Below(8); i > 0; --i) {
          const RingReader::Found found = reader.Next(&view);
          if (found == RingReader::Found::kRecord) CheckView(view, ring);
          R2CC_CHECK(hostile || found != RingReader::Found::kBroken);
        }
        if (input.TakeBool()) reader.Release();
      }
    }
  }
  return 0;
}
