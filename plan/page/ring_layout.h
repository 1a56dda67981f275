// The bytes of an evidence ring.
#ifndef R2CC_PLAN_PAGE_RING_LAYOUT_H_
#define R2CC_PLAN_PAGE_RING_LAYOUT_H_

#include <cstddef>
#include <cstdint>

#include "plan/page/ring.h"

namespace r2cc::plan {

constexpr size_t kRingRecordWords = sizeof(EvidenceRecord) / sizeof(uint64_t);

struct RingLayout {
  uint64_t magic;
  uint32_t version;
  uint32_t newest;
  // Written once by the consumer, before the memory is handed out. The newest EvidenceCause that it knows; 0 in rings of release 0.2.0.
  uint64_t newest_cause;
  uint64_t clock_offset_ns;  // of the consumer (clock_offset.h), as int64; written before the ring is handed out
  uint64_t newest_kind;      // the same: the newest EvidenceRecordKind that the consumer knows; 0 in rings of release 0.2.0
  uint64_t reserved1[3];
  // Counts since the start, not positions: the difference is what waits. Each on its own cache line, with what its side writes.
  uint64_t put;      // producer
  uint64_t dropped;  // producer
  uint64_t reserved2[6];
  uint64_t taken;  // consumer
  uint64_t reserved3[7];
  uint64_t records[kRingRecords][kRingRecordWords];
};

}  // namespace r2cc::plan

#endif  // R2CC_PLAN_PAGE_RING_LAYOUT_H_
