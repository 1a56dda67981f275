// Datagrams on the rails' probe sockets: anybody can send one.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/core/check.h"
#include "health/probe/rail_wire.h"
#include "tests/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace r2cc;
  r2cc::fuzz::Input input(data, size);
  const std::span<const uint8_t> bytes = input.rest();
  health::RailProbeError error = health::RailProbeError::kNone;
  const auto probe = health::DecodeRailProbe(bytes, &error);
  R2CC_CHECK(probe.has_value() == (error == health::RailProbeError::kNone));
  if (!probe.has_value()) return 0;
  R2CC_CHECK(probe->to_nonce != 0 && probe->from_nonce != 0);
  // There is one encoding of each probe, but for the key.
  constexpr health::ProbeMacKey kKey = {1};
  const health::RailProbeBytes again = health::EncodeRailProbe(*probe, kKey);
  R2CC_CHECK(std::equal(again.begin(), again.end() - sizeof(health::ProbeMac), bytes.begin()) &&
             std::all_of(bytes.begin() + again.size(), bytes.end(), [](uint8_t byte) { return byte == 0; }));
  R2CC_CHECK(health::IsAuthentic(again, kKey));
  R2CC_CHECK(!health::IsAuthentic(bytes, kKey) || std::equal(again.begin(), again.end(), bytes.begin()));
  return 0;
}
