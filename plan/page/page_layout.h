// The bytes of a page. Both ends are little-endian 64-bit Linux, on one machine.
#ifndef R2CC_PLAN_PAGE_PAGE_LAYOUT_H_
#define R2CC_PLAN_PAGE_PAGE_LAYOUT_H_

#include <cstddef>
#include <cstdint>

#include "plan/page/page.h"

namespace r2cc::plan {

// The body is counted in 64-bit words, because words are what can be copied atomically.
constexpr size_t kPageBodyIncarnation = 0;
constexpr size_t kPageBodyDisplaced = 1;  // entries that are; before version 3: 0
constexpr size_t kPageBodyEpochCounter = 2;
constexpr size_t kPageBodyEntryCount = 3;
constexpr size_t kPageBodyEntries = 4;
constexpr size_t kPageEntryWords = sizeof(PageEntry) / sizeof(uint64_t);

struct PageLayout {
  uint64_t magic;
  uint32_t version;       // the oldest whose rules read it
  uint32_t newest;        // of its writer; 0: the same
  uint64_t heartbeat_ns;  // CLOCK_MONOTONIC; outside the sequence: it does not depend on the body
  uint64_t sequence;      // odd while the body is being written
  uint64_t checksum;      // CRC-32C over the used words of the body, in the low half; guarded by the sequence
  // 0: the writer runs, or ended by force. Otherwise until when (CLOCK_MONOTONIC) the page counts without a heartbeat.
  uint64_t end_lease_until_ns;
  // How far the writer's CLOCK_MONOTONIC is ahead of the machine's (clock_offset.h), as int64; written once. 0.2.0 leaves it 0.
  uint64_t clock_offset_ns;
  // From version 3 on: the key of the entries' tags, as long as the page exists. 64 random bits, which the first half of the hash's key is;
  // a tag has 40.
  uint64_t key;
  uint64_t body[kPageBodyEntries + kPageEntriesMax * kPageEntryWords];
};
static_assert(sizeof(PageLayout) == kPageBytes);

}  // namespace r2cc::plan

#endif  // R2CC_PLAN_PAGE_PAGE_LAYOUT_H_
