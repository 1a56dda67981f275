#include "observe/record/account.h"

namespace r2cc::observe {

Counts& Counts::operator+=(const Counts& more) {
  records += more.records;
  dropped_device += more.dropped_device;
  dropped_host += more.dropped_host;
  unwanted += more.unwanted;
  missed += more.missed;
  return *this;
}

bool Account::Add(const RecordHeader& header, uint64_t dropped_host, Counts* gap) {
  if (header.step < position_.steps || header.sequence < position_.sequences || dropped_host < position_.dropped_host) return false;
  const uint64_t steps = header.step - position_.steps;
  const uint64_t taken = header.sequence - position_.sequences;
  Counts missing;
  missing.dropped_host = dropped_host - position_.dropped_host;
  missing.unwanted = header.unwanted - position_.unwanted;
  if (taken > steps || missing.dropped_host > taken || missing.unwanted > steps - taken) return false;
  missing.missed = taken - missing.dropped_host;
  missing.dropped_device = steps - taken - missing.unwanted;
  const uint64_t records = header.kind == static_cast<uint8_t>(RecordKind::kRecord) ? 1 : 0;
  position_ = {header.step + records, header.sequence + records, header.unwanted, dropped_host};
  counts_ += missing;
  counts_.records += records;
  *gap = missing;
  return true;
}

}  // namespace r2cc::observe
