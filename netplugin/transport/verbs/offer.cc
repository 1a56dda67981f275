#include "netplugin/transport/verbs/offer.h"

#include <algorithm>
#include <concepts>
#include <cstring>

#include "base/core/byte_reader.h"

namespace r2cc::net::verbs {
namespace {

// The first byte says what it is: an end of another release, or of another transport, is refused and not misread.
constexpr uint8_t kRailKind = 0x51;
constexpr uint8_t kOfferKind = 0x52;
constexpr uint8_t kKeyKind = 0x53;
constexpr uint32_t kNumberMax = 0xffffff;

template <std::integral T>
void Put(T value, Endpoint* out) {
  uint8_t raw[sizeof(T)];
  std::memcpy(raw, &value, sizeof(T));
  out->insert(out->end(), raw, raw + sizeof(T));
}
void Put(const RailAddress& address, Endpoint* out) {
  Put(static_cast<uint8_t>(address.link_layer), out);
  out->insert(out->end(), address.gid.begin(), address.gid.end());
  Put(address.lid, out);
}
void Put(const RemoteMemory& memory, Endpoint* out) {
  Put(memory.address, out);
  Put(memory.key, out);
}

RailAddress GetAddress(ByteReader* in) {
  RailAddress address;
  const auto layer = in->Get<uint8_t>();
  if (layer != static_cast<uint8_t>(LinkLayer::kInfiniBand) && layer != static_cast<uint8_t>(LinkLayer::kEthernet)) in->Fail();
  address.link_layer = static_cast<LinkLayer>(layer);
  const auto gid = in->Take(address.gid.size());
  std::copy(gid.begin(), gid.end(), address.gid.begin());
  address.lid = in->Get<uint16_t>();
  return address;
}
RemoteMemory GetMemory(ByteReader* in) {
  const auto address = in->Get<uint64_t>();
  return {address, in->Get<uint32_t>()};
}
bool IsMtu(uint32_t bytes) { return bytes == 256 || bytes == 512 || bytes == 1024 || bytes == 2048 || bytes == 4096; }

}  // namespace

Endpoint Encode(const RailAddress& address) {
  Endpoint out{kRailKind};
  Put(address, &out);
  return out;
}

bool Decode(const Endpoint& endpoint, RailAddress* address) {
  ByteReader in{std::span<const uint8_t>(endpoint)};
  if (in.Get<uint8_t>() != kRailKind) return false;
  *address = GetAddress(&in);
  return in.Done();
}

Endpoint Encode(const Offer& offer) {
  Endpoint out{kOfferKind};
  Put(offer.address, &out);
  Put(offer.number, &out);
  Put(offer.psn, &out);
  Put(offer.mtu_bytes, &out);
  Put(offer.receives, &out);
  Put(static_cast<uint8_t>(offer.adaptive_routing ? 1 : 0), &out);
  for (const RemoteMemory& memory : {offer.records, offer.tails, offer.proof}) Put(memory, &out);
  return out;
}

bool Decode(const Endpoint& endpoint, Offer* offer) {
  ByteReader in{std::span<const uint8_t>(endpoint)};
  if (in.Get<uint8_t>() != kOfferKind) return false;
  offer->address = GetAddress(&in);
  offer->number = in.Get<uint32_t>();
  offer->psn = in.Get<uint32_t>();
  offer->mtu_bytes = in.Get<uint32_t>();
  offer->receives = in.Get<uint16_t>();
  const auto flags = in.Get<uint8_t>();
  offer->adaptive_routing = flags == 1;
  for (RemoteMemory* const memory : {&offer->records, &offer->tails, &offer->proof}) *memory = GetMemory(&in);
  return in.Done() && offer->number <= kNumberMax && offer->psn <= kNumberMax && IsMtu(offer->mtu_bytes) && flags <= 1;
}

Endpoint EncodeKey(uint32_t key) {
  Endpoint out{kKeyKind};
  Put(key, &out);
  return out;
}

bool DecodeKey(const Endpoint& endpoint, uint32_t* key) {
  ByteReader in{std::span<const uint8_t>(endpoint)};
  if (in.Get<uint8_t>() != kKeyKind) return false;
  *key = in.Get<uint32_t>();
  return in.Done();
}

}  // namespace r2cc::net::verbs
