#include "observe/record/record.h"

namespace r2cc::observe {

const char* FindError(const RecordHeader& header, const RecordTrailer& trailer, uint64_t bytes) {
  if (header.magic != kRecordMagic) return "a foreign magic number";
  if (header.version != kRecordVersion) return "another version than 1";
  if (header.kind != static_cast<uint8_t>(RecordKind::kRecord) && header.kind != static_cast<uint8_t>(RecordKind::kClosing))
    return "a kind that no reader gets";
  if (header.bytes != bytes || bytes < kRecordBytesLeast || bytes % kRecordAlignment != 0) return "another length than its place";
  if (header.parts != 1 || header.part != 0) return "several parts, which this release does not read";
  if (header.sequence > header.step) return "more steps taken than executed";
  if (trailer.magic != kTrailerMagic || trailer.zero != 0) return "no trailer";
  if (trailer.step != header.step || trailer.sequence != header.sequence || trailer.bytes != header.bytes)
    return "the trailer of another record";
  return nullptr;
}

}  // namespace r2cc::observe
