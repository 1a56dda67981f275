#include "health/io/rdma_end.h"

#include <algorithm>
#include <bit>
#include <span>

#include "base/core/byte_reader.h"

namespace r2cc::health {
namespace {

constexpr uint8_t kFormat = 1;
constexpr uint32_t kNumberMost = 0xff'ffff;
// 0 and 1 are the fabric's own queue pairs.
constexpr uint32_t kNumberLeast = 2;
constexpr int kMtuBitsLeast = 8;
constexpr int kMtuBitsMost = 12;

template <typename T>
void Put(T value, std::string* bytes) {
  for (size_t i = 0; i < sizeof(T); ++i) bytes->push_back(static_cast<char>(value >> (8 * i)));
}

bool IsUnicast(const verbs::Gid& gid) {
  return gid[0] != 0xff && std::any_of(gid.begin(), gid.end(), [](uint8_t byte) { return byte != 0; });
}

}  // namespace

std::string EncodeRdmaEnd(const RdmaEnd& end) {
  std::string bytes;
  Put(kFormat, &bytes);
  Put(static_cast<uint8_t>(std::countr_zero(end.mtu_bytes)), &bytes);
  Put(end.lid, &bytes);
  Put(end.number, &bytes);
  Put(end.psn, &bytes);
  Put(end.meets, &bytes);
  bytes.append(end.gid.begin(), end.gid.end());
  return bytes;
}

std::optional<RdmaEnd> DecodeRdmaEnd(std::string_view bytes) {
  ByteReader reader(std::span(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()));
  if (reader.Get<uint8_t>() != kFormat) return std::nullopt;
  const int mtu_bits = reader.Get<uint8_t>();
  if (mtu_bits < kMtuBitsLeast || mtu_bits > kMtuBitsMost) return std::nullopt;
  RdmaEnd end;
  end.mtu_bytes = uint32_t{1} << mtu_bits;
  end.lid = reader.Get<uint16_t>();
  end.number = reader.Get<uint32_t>();
  end.psn = reader.Get<uint32_t>();
  end.meets = reader.Get<uint32_t>();
  const auto gid = reader.Take(end.gid.size());
  if (!reader.Done()) return std::nullopt;
  std::copy(gid.begin(), gid.end(), end.gid.begin());
  const bool sound =
      end.number >= kNumberLeast && end.number <= kNumberMost && end.psn <= kNumberMost && end.meets <= kNumberMost && IsUnicast(end.gid);
  return sound ? std::optional(end) : std::nullopt;
}

}  // namespace r2cc::health
