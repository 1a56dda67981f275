// The layout of the three shared memories of a producer. The producer alone writes control and ring; a reader's cursor is in the third,
// which both may write. A reader of another process's memory copies a word first and judges the copy.
#ifndef R2CC_OBSERVE_RING_CONTROL_H_
#define R2CC_OBSERVE_RING_CONTROL_H_

#include <cstddef>
#include <cstdint>

#include "base/core/shared_memory.h"
#include "observe/record/record.h"

namespace r2cc::observe {

constexpr uint64_t kControlMagic = 0x314c525443325200;  // "\0R2CTRL1"
constexpr uint64_t kRingMagic = 0x31474e4952325200;
constexpr uint64_t kCursorsMagic = 0x3152535243325200;
constexpr uint32_t kRingVersion = 1;

constexpr size_t kReadersMax = 16;
constexpr size_t kRunNameBytesMax = 64;
constexpr size_t kLayoutsBytes = size_t{1} << 20;
constexpr uint64_t kRingBytesLeast = 4096, kRingBytesMost = uint64_t{1} << 40;

enum class Life : uint64_t { kOpen, kClosed, kFailed };

struct alignas(64) ControlMemory {
  SharedHeader header;
  uint64_t id;  // joins the three
  uint64_t ring_bytes;
  uint64_t pid, rank;
  char run[kRunNameBytesMax + 8];
  char cause[200];  // of kFailed; written before it

  alignas(64) uint64_t head;  // bytes that were ever committed
  uint64_t oldest;            // from here on all is whole
  uint64_t reclaiming;        // from here on it may soon be so alone: a reader that registers begins no earlier
  uint64_t life;

  // The producer's counts, as of its last step: a step changes one of them, so their sum is right at all times.
  alignas(64) uint64_t records;
  uint64_t dropped_device, dropped_host, unwanted;
  uint64_t cut_off, lied;  // readers, by their number

  // A reader's registration is void when this is no longer what it was.
  alignas(64) uint64_t generation[kReadersMax];

  alignas(64) uint64_t layouts_end;  // of bytes below; they are never changed again
  uint8_t layouts[kLayoutsBytes];
};

struct CursorsMemory {
  SharedHeader header;
  uint64_t id;
  struct alignas(64) Cursor {
    uint64_t word;  // 0: free
    uint64_t pid;   // for people
  } cursors[kReadersMax];
};

// A cursor is one word, so that a reader that was cut off cannot move that of its successor: its generation is another.
constexpr int kPositionBits = 48;
constexpr uint64_t kPositionUnit = kRecordAlignment;
constexpr uint64_t kPositionSpan = kPositionUnit << kPositionBits;  // 16 PiB, ten days at 20 GB/s
constexpr uint64_t CursorWord(uint64_t generation, uint64_t position) {
  return (generation & 0xffff) << kPositionBits | (position % kPositionSpan) / kPositionUnit;
}
// The position next to `oldest` that the word can mean; `oldest` itself where it would lie before that.
constexpr uint64_t PositionOf(uint64_t word, uint64_t oldest) {
  const uint64_t ahead = ((word * kPositionUnit) % kPositionSpan - oldest % kPositionSpan) % kPositionSpan;
  return ahead > kPositionSpan / 2 ? oldest : oldest + ahead;
}
constexpr uint64_t GenerationOf(uint64_t word) { return word >> kPositionBits; }

// The ring's memory begins with this; its bytes follow.
struct alignas(64) RingStart {
  SharedHeader header;
  uint64_t id;
};

constexpr uint32_t kFrameMagic = 0x46543252;  // "R2TF"

// Before each record in the host's ring.
struct RingFrame {
  uint32_t magic;
  uint32_t pad;           // 1: no record follows, the next one begins with the ring
  uint64_t position;      // where it is, counted from the start
  uint64_t bytes;         // with the frame
  uint64_t arrival_ns;    // CLOCK_MONOTONIC
  uint64_t dropped_host;  // records that found no room until here
  uint64_t zero[3];
};
static_assert(sizeof(RingFrame) == kRecordAlignment);

}  // namespace r2cc::observe

#endif  // R2CC_OBSERVE_RING_CONTROL_H_
