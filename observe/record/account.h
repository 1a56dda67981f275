// Counts of steps by what became of them, and what is missing between two records. Pure.
#ifndef R2CC_OBSERVE_RECORD_ACCOUNT_H_
#define R2CC_OBSERVE_RECORD_ACCOUNT_H_

#include <cstdint>

#include "observe/record/record.h"

namespace r2cc::observe {

// steps = records + dropped_device + dropped_host + unwanted [+ missed], on the producer's side and on each reader's.
struct Counts {
  uint64_t records = 0;
  uint64_t dropped_device = 0;  // no room in the ring of the device
  uint64_t dropped_host = 0;    // no room in the ring that readers read
  uint64_t unwanted = 0;        // the schedule or the groups excluded them, or the step did not end
  uint64_t missed = 0;          // was in the ring, but this reader came late or was cut off; always 0 on the producer's side

  uint64_t Steps() const { return records + dropped_device + dropped_host + unwanted + missed; }
  Counts& operator+=(const Counts& more);
  bool operator==(const Counts&) const = default;
};

// A reader's state after a record: all until here is accounted for.
struct Position {
  uint64_t steps = 0;  // that have an outcome
  uint64_t sequences = 0;
  uint32_t unwanted = 0;
  uint64_t dropped_host = 0;
};

// Adds up a reader's records. REQUIRES: FindError() found nothing.
class Account {
 public:
  // A record, with the count of host drops in its ring. False: it cannot follow what was seen before, and nothing changes. `gap`:
  // what is missing between it and the one before, without records.
  bool Add(const RecordHeader& header, uint64_t dropped_host, Counts* gap);

  const Counts& counts() const { return counts_; }
  const Position& position() const { return position_; }

 private:
  Position position_;
  Counts counts_;
};

}  // namespace r2cc::observe

#endif  // R2CC_OBSERVE_RECORD_ACCOUNT_H_
