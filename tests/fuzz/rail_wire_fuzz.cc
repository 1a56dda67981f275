// Datagrams on the rails' probe sockets: anybody can send one.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/core/check.h"
#include "base/core/hash.h"
#include "health/probe/rail_wire.h"
#include "tests/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace r2cc;
  r2cc::fuzz::Input input(data, size);
  const bool mend = input.TakeBool();  // a right checksum, so that what lies behind it is reached
  std::span<const uint8_t> bytes = input.rest();
  health::RailProbeBytes mended{};
  if (mend && bytes.size() >= mended.size()) {
    std::copy_n(bytes.begin(), mended.size(), mended.begin());
    const uint32_t sum = Crc32c(mended.data(), mended.size() - 4);
    for (size_t i = 0; i < 4; ++i) mended[mended.size() - 4 + i] = static_cast<uint8_t>(sum >> (8 * i));
    bytes = mended;
  }
  health::RailProbeError error = health::RailProbeError::kNone;
  const auto probe = health::DecodeRailProbe(bytes, &error);
  R2CC_CHECK(probe.has_value() == (error == health::RailProbeError::kNone));
  if (!probe.has_value()) return 0;
  R2CC_CHECK(probe->to_nonce != 0 && probe->from_nonce != 0);
  // There is one encoding of each probe.
  const health::RailProbeBytes again = health::EncodeRailProbe(*probe);
  R2CC_CHECK(std::equal(again.begin(), again.end(), bytes.begin(), bytes.end()));
  return 0;
}
