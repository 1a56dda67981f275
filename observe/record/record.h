// The bytes of a record, version 1: what one step of one producer left. Header, tags, taps, trailer, all little-endian. For kernels, too:
// nothing here but integers.
#ifndef R2CC_OBSERVE_RECORD_RECORD_H_
#define R2CC_OBSERVE_RECORD_RECORD_H_

#include <cstddef>
#include <cstdint>

#ifdef __CUDACC__
#define R2CC_OBSERVE_BOTH __host__ __device__
#else
#define R2CC_OBSERVE_BOTH
#endif

namespace r2cc::observe {

constexpr uint32_t kRecordMagic = 0x52543252;   // "R2TR"
constexpr uint32_t kTrailerMagic = 0x45543252;  // "R2TE"
constexpr uint8_t kRecordVersion = 1;
// Records begin and end at multiples of this, so that the end of a ring always has room for the header of a pad.
constexpr uint64_t kRecordAlignment = 64;
// Tags and taps begin at multiples of this.
constexpr uint64_t kTapAlignment = 16;

enum class RecordKind : uint8_t {
  kRecord = 1,   // a step that was taken
  kPad = 2,      // fills the end of a device's ring
  kClosing = 3,  // the producer has ended; the header has its last counts
};

struct RecordHeader {
  uint32_t magic;
  uint8_t version;
  uint8_t kind;
  uint16_t producer;
  uint64_t step;      // executions before this one; of a closing record: all executions
  uint64_t sequence;  // steps that were taken before this one; of a closing record: all of them
  uint64_t bytes;     // of the whole record
  uint64_t groups;    // the groups that are in it
  uint64_t time_ns;   // of the producer's device; on a host CLOCK_MONOTONIC
  uint32_t layout;
  uint32_t rows;
  uint16_t part, parts;
  uint32_t unwanted;  // steps that were not wanted until here, modulo 2^32
};
static_assert(sizeof(RecordHeader) == 64);

struct RecordTrailer {
  uint32_t magic;
  uint32_t zero;
  uint64_t step, sequence, bytes;
};
static_assert(sizeof(RecordTrailer) == 32);

constexpr R2CC_OBSERVE_BOTH uint64_t RoundUp(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

// The size of a record whose tags and taps end at `payload_end`, counted from its begin.
constexpr R2CC_OBSERVE_BOTH uint64_t RecordBytes(uint64_t payload_end) {
  return RoundUp(payload_end + sizeof(RecordTrailer), kRecordAlignment);
}

constexpr uint64_t kRecordBytesLeast = RecordBytes(sizeof(RecordHeader));

// Null if the header can be that of a record of `bytes` that ends where its trailer states; else what is wrong with it.
const char* FindError(const RecordHeader& header, const RecordTrailer& trailer, uint64_t bytes);

}  // namespace r2cc::observe

#endif  // R2CC_OBSERVE_RECORD_RECORD_H_
