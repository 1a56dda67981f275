#include "plan/schedule/schedule.h"

namespace r2cc::plan {

Range EvenPiece(uint64_t bytes, uint64_t index, uint64_t pieces) {
  const auto cut = [&](uint64_t i) {
    if (i >= pieces) return bytes;
    return static_cast<uint64_t>(static_cast<unsigned __int128>(bytes / kElementBytes) * i / pieces) * kElementBytes;
  };
  return {cut(index), cut(index + 1)};
}

}  // namespace r2cc::plan
