#include "netplugin/link/frames.h"

#include <type_traits>
#include <utility>

#include "netplugin/link/packet_fields.h"

namespace r2cc::net {
namespace {

// What the body of each control frame begins with, whatever its type.
struct Fields {
  FlowId flow = 0;
  LinkId link = 0;
  Incarnation incarnation = 0;
  uint32_t cause = 0;
  bool ok = false;
  uint64_t number = 0;
  MessageId message = 0;
};

void ForEachField(auto& each, Is<Fields> auto& fields) {
  each(fields.flow);
  each(fields.link);
  each(fields.incarnation);
  each(fields.cause);
  each(fields.ok);
  each(fields.number);
  each(fields.message);
}

// Which of them a type uses, and for what, listed once for both ways: `pair` copies one into the other.
void PairFields(auto pair, Is<frames::Ping> auto& frame, auto& fields) { pair(frame.number, fields.number); }
void PairFields(auto pair, Is<frames::Pong> auto& frame, auto& fields) { pair(frame.number, fields.number); }
void PairFields(auto pair, Is<FlowReport> auto& frame, auto& fields) {
  pair(frame.flow, fields.flow);
  pair(frame.placed_through, fields.message);
}
void PairFields(auto pair, Is<frames::FlowOpen> auto& frame, auto& fields) {
  pair(frame.flow, fields.flow);
  pair(frame.listen_id, fields.number);
  pair(frame.rail, fields.cause);
}
void PairFields(auto pair, Is<frames::FlowOpened> auto& frame, auto& fields) {
  pair(frame.flow, fields.flow);
  pair(frame.ok, fields.ok);
  pair(frame.cause, fields.cause);
  pair(frame.eager_messages, fields.number);
}
void PairFields(auto pair, Is<frames::Fence> auto& frame, auto& fields) {
  pair(frame.link, fields.link);
  pair(frame.incarnation, fields.incarnation);
  pair(frame.cause, fields.cause);
}
void PairFields(auto pair, Is<frames::Fenced> auto& frame, auto& fields) {
  pair(frame.link, fields.link);
  pair(frame.incarnation, fields.incarnation);
  pair(frame.cause, fields.cause);
  pair(frame.answer, fields.number);
}
void PairFields(auto pair, Is<frames::FencedAck> auto& frame, auto& fields) {
  pair(frame.link, fields.link);
  pair(frame.incarnation, fields.incarnation);
}
void PairFields(auto pair, Is<frames::Proved> auto& frame, auto& fields) {
  pair(frame.link, fields.link);
  pair(frame.incarnation, fields.incarnation);
  pair(frame.ok, fields.ok);
}
void PairFields(auto pair, Is<frames::FlowEnd> auto& frame, auto& fields) { pair(frame.flow, fields.flow); }
void PairFields(auto pair, Is<frames::FlowEnded> auto& frame, auto& fields) { pair(frame.flow, fields.flow); }
void PairFields(auto pair, Is<frames::Bye> auto& frame, auto& fields) {
  pair(frame.flow, fields.flow);
  pair(frame.placed_through, fields.message);
}
void PairFields(auto pair, Is<frames::ByeAck> auto& frame, auto& fields) { pair(frame.flow, fields.flow); }
void PairFields(auto pair, Is<frames::RailUp> auto& frame, auto& fields) { pair(frame.rail, fields.number); }
void PairFields(auto pair, Is<frames::Want> auto& frame, auto& fields) {
  pair(frame.flow, fields.flow);
  pair(frame.message, fields.message);
}
void PairFields(auto, Is<frames::RegionAnnounced> auto&, auto&) {}
void PairFields(auto pair, Is<frames::RegionKnown> auto& frame, auto& fields) {
  pair(frame.region, fields.number);
  pair(frame.generation, fields.incarnation);
}
void PairFields(auto pair, Is<frames::LinkOffer> auto& frame, auto& fields) {
  pair(frame.link, fields.link);
  pair(frame.incarnation, fields.incarnation);
  pair(frame.rails, fields.number);
}
void PairFields(auto pair, Is<frames::LinkAnswer> auto& frame, auto& fields) {
  pair(frame.link, fields.link);
  pair(frame.incarnation, fields.incarnation);
  pair(frame.ok, fields.ok);
}

void PutPlaces(const std::vector<BufferPlace>& places, PacketWriter* out) {
  out->Put(static_cast<uint32_t>(places.size()));
  for (const BufferPlace& place : places) {
    out->Put(place.region);
    out->Put(place.generation);
    out->Put(place.offset);
  }
}

bool GetPlaces(PacketReader* in, size_t buffers, std::vector<BufferPlace>* places) {
  const auto count = in->Get<uint32_t>();
  if (count != 0 && count != buffers) return false;
  places->resize(count);
  for (BufferPlace& place : *places) {
    place.region = in->Get<RegionId>();
    place.generation = in->Get<uint32_t>();
    place.offset = in->Get<uint64_t>();
    if ((place.region == 0) != (place.generation == 0) || (place.region == 0 && place.offset != 0)) return false;
  }
  return in->ok();
}

void PutRegion(const Region& region, PacketWriter* out) {
  out->Put(region.id);
  out->Put(region.generation);
  out->Put(region.base);
  out->Put(region.bytes);
  out->Put(static_cast<uint16_t>(region.keys.size()));
  for (const std::vector<RailEndpoint>& keys : region.keys) PutEndpoints(keys, out);
}

bool GetRegion(PacketReader* in, Region* region) {
  region->id = in->Get<RegionId>();
  region->generation = in->Get<uint32_t>();
  region->base = in->Get<uint64_t>();
  region->bytes = in->Get<uint64_t>();
  const auto rails = in->Get<uint16_t>();
  if (region->id == 0 || region->generation == 0 || region->bytes > UINT64_MAX - region->base || rails > kWireRailsMax) return false;
  region->keys.resize(rails);
  for (std::vector<RailEndpoint>& keys : region->keys)
    if (!GetEndpoints(in, &keys)) return false;
  return in->ok();
}

void PutBits(const std::vector<bool>& bits, PacketWriter* out) {
  out->Put(static_cast<uint32_t>(bits.size()));
  uint8_t byte = 0;
  for (size_t i = 0; i < bits.size(); ++i) {
    if (bits[i]) byte = static_cast<uint8_t>(byte | 1u << (i % 8));
    if (i % 8 == 7 || i + 1 == bits.size()) {
      out->Put(byte);
      byte = 0;
    }
  }
}

bool GetBits(PacketReader* in, std::vector<bool>* bits) {
  const auto count = in->Get<uint32_t>();
  if (count > kChunksMax || (count + 7) / 8 > in->left()) return false;
  bits->resize(count);
  uint8_t byte = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (i % 8 == 0) byte = in->Get<uint8_t>();
    (*bits)[i] = (byte >> (i % 8) & 1) != 0;
  }
  return in->ok();
}

void PutArrivals(const std::vector<FlowArrivals>& all, PacketWriter* out) {
  out->Put(static_cast<uint32_t>(all.size()));
  for (const FlowArrivals& arrivals : all) {
    out->Put(arrivals.flow);
    out->Put(arrivals.placed_through);
    out->Put(static_cast<uint32_t>(arrivals.partial.size()));
    for (const MessageArrivals& partial : arrivals.partial) {
      out->Put(partial.message);
      out->Put(partial.chunk_bytes);
      PutBits(partial.placed, out);
    }
  }
}

bool GetArrivals(PacketReader* in, std::vector<FlowArrivals>* all) {
  const auto flows = in->Get<uint32_t>();
  if (flows > kFlowsMax) return false;
  for (uint32_t f = 0; f < flows && in->ok(); ++f) {
    FlowArrivals arrivals;
    arrivals.flow = in->Get<uint32_t>();
    arrivals.placed_through = in->Get<uint64_t>();
    const auto partials = in->Get<uint32_t>();
    for (uint32_t p = 0; p < partials && in->ok(); ++p) {
      MessageArrivals partial;
      partial.message = in->Get<uint64_t>();
      partial.chunk_bytes = in->Get<uint32_t>();
      if (!GetBits(in, &partial.placed)) return false;
      arrivals.partial.push_back(std::move(partial));
    }
    all->push_back(std::move(arrivals));
  }
  return in->ok();
}

// After the fields, numbers. Grants have the capacities of their buffers there, other types none.
void PutNumbers(const std::vector<uint64_t>& numbers, PacketWriter* out) {
  out->Put(static_cast<uint32_t>(numbers.size()));
  for (const uint64_t number : numbers) out->Put(number);
}

bool GetNumbers(PacketReader* in, std::vector<uint64_t>* numbers) {
  const auto count = in->Get<uint32_t>();
  if (!in->ok() || uint64_t{count} * sizeof(uint64_t) > in->left()) return false;
  numbers->resize(count);
  for (uint64_t& number : *numbers) number = in->Get<uint64_t>();
  return true;
}

// Then what is its type's own, and last the arrivals of flows: Fenced has some, other types none.
template <typename T>
void PutFrame(const T& frame, PacketWriter* out) {
  Fields fields;
  PairFields([](const auto& from, auto& to) { to = from; }, frame, fields);
  PutField put(out);
  ForEachField(put, std::as_const(fields));
  if constexpr (std::is_same_v<T, frames::Fenced>) {
    put(frame.part);
    put(frame.parts);
  }
  if constexpr (std::is_same_v<T, FlowReport>) {
    PutNumbers(frame.capacities, out);
    if (frame.grants) PutPlaces(frame.places, out);
  } else {
    PutNumbers({}, out);
  }
  if constexpr (std::is_same_v<T, frames::RegionAnnounced>) PutRegion(*frame.region, out);
  if constexpr (requires { frame.endpoint; }) put(frame.endpoint);
  if constexpr (std::is_same_v<T, frames::Fenced>)
    PutArrivals(frame.arrivals, out);
  else
    PutArrivals({}, out);
}

template <typename T>
bool GetFrame(FrameType type, PacketReader* in, T* frame) {
  Fields fields;
  GetField get(in);
  ForEachField(get, fields);
  PairFields([](auto& to, const auto& from) { to = from; }, *frame, fields);
  if constexpr (std::is_same_v<T, frames::Fenced>) {
    get(frame->part);
    get(frame->parts);
    if (frame->part >= frame->parts || frame->parts > kFencedPartsMax) return false;
  }
  std::vector<uint64_t> numbers;
  if (!GetNumbers(in, &numbers)) return false;
  if constexpr (std::is_same_v<T, FlowReport>) {
    frame->grants = type == FrameType::kGrant;
    if (frame->grants) {
      if (!GetPlaces(in, numbers.size(), &frame->places)) return false;
      frame->capacities = std::move(numbers);
    }
  }
  if constexpr (std::is_same_v<T, frames::RegionAnnounced>) {
    auto region = std::make_shared<Region>();
    if (!GetRegion(in, region.get())) return false;
    frame->region = std::move(region);
  }
  if constexpr (requires { frame->endpoint; }) get(frame->endpoint);
  std::vector<FlowArrivals> arrivals;
  if (!GetArrivals(in, &arrivals)) return false;
  if constexpr (std::is_same_v<T, frames::Fenced>) frame->arrivals = std::move(arrivals);
  return in->Done();
}

template <typename T>
constexpr bool HasType(FrameType type) {
  if constexpr (std::is_same_v<T, FlowReport>)
    return type == FrameType::kGrant || type == FrameType::kAck;
  else
    return type == T::type();
}

// As the alternative of this type, if there is one.
template <typename... T>
bool GetAny(FrameType type, PacketReader* in, std::variant<T...>* frame) {
  bool sound = false;
  static_cast<void>(((HasType<T>(type) && (sound = GetFrame(type, in, &frame->template emplace<T>()), true)) || ...));
  return sound;
}

}  // namespace

FrameType TypeOf(const Frame& frame) {
  return std::visit(
      [](const auto& of) {
        if constexpr (std::is_same_v<std::remove_cvref_t<decltype(of)>, FlowReport>)
          return of.grants ? FrameType::kGrant : FrameType::kAck;
        else
          return of.type();
      },
      frame);
}

Bytes Encode(const Frame& frame, uint32_t tag) {
  PacketWriter out(static_cast<uint16_t>(TypeOf(frame)));
  std::visit([&out](const auto& of) { PutFrame(of, &out); }, frame);
  return out.Finish(tag);
}

bool Decode(std::span<const uint8_t> packet, uint32_t tag, Frame* frame) {
  uint16_t type;
  std::span<const uint8_t> body;
  if (!PacketBody(packet, tag, &type, &body)) return false;
  PacketReader in(body);
  return GetAny(static_cast<FrameType>(type), &in, frame);
}

}  // namespace r2cc::net
