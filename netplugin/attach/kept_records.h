// Keeps the last numbered records of a process (plan::IsNumbered), for daemons that start later. Pure.
#ifndef R2CC_NETPLUGIN_ATTACH_KEPT_RECORDS_H_
#define R2CC_NETPLUGIN_ATTACH_KEPT_RECORDS_H_

#include <cstddef>
#include <cstdint>
#include <deque>

#include "plan/page/ring.h"

namespace r2cc::net {

class KeptRecords {
 public:
  // 144 KiB; a quarter of a ring. One lost rail makes three records for each peer.
  static constexpr size_t kMost = 1024;

  // The record to send to the daemon. A record of a numbered kind gets its number, and is kept.
  plan::EvidenceRecord Keep(plan::EvidenceRecord record) {
    if (!plan::IsNumbered(static_cast<plan::EvidenceRecordKind>(record.kind))) return record;
    record.received_bytes = ++numbers_;
    if (kept_.size() >= kMost) kept_.pop_front();
    kept_.push_back(record);
    return record;
  }
  const std::deque<plan::EvidenceRecord>& all() const { return kept_; }

 private:
  uint64_t numbers_ = 0;
  std::deque<plan::EvidenceRecord> kept_;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_ATTACH_KEPT_RECORDS_H_
