#include "netplugin/collnet/message.h"

#include <algorithm>
#include <concepts>
#include <cstring>
#include <type_traits>

#include "base/core/byte_reader.h"
#include "netplugin/collnet/mutant.h"

namespace r2cc::collnet {
namespace {

constexpr uint16_t kMagic = 0xc011;
constexpr size_t kTextCharsMax = 400;
enum class Type : uint8_t { kStamp = 1, kMemberState = 2, kFailure = 3 };

class Writer {
 public:
  Writer() {
    Put(kMagic);
    Put(kGroupVersion);
  }
  template <std::integral T>
  void Put(T value) {
    const size_t at = bytes_.size();
    bytes_.resize(at + sizeof(T));
    std::memcpy(&bytes_[at], &value, sizeof(T));
  }
  void Put(const std::string& text) {
    const size_t length = std::min(text.size(), kTextCharsMax);
    Put(static_cast<uint16_t>(length));
    const auto* const raw = reinterpret_cast<const std::byte*>(text.data());
    bytes_.insert(bytes_.end(), raw, raw + length);
  }
  Bytes Take() { return std::move(bytes_); }

 private:
  Bytes bytes_;
};

// Empty if what follows is of this release.
std::string ReadHeader(ByteReader* from) {
  if (from->Get<uint16_t>() != kMagic || !from->ok()) return "it is no message of a group";
  const auto version = from->Get<uint16_t>();
  if (version == kGroupVersion) return "";
  return "its release uses version " + std::to_string(version) + ", this one " + std::to_string(kGroupVersion) +
         ": all ranks of a job need the same";
}

void Write(const Stamp& stamp, Writer* to) {
  to->Put(static_cast<uint8_t>(Type::kStamp));
  to->Put(stamp.epoch);
  to->Put(stamp.from);
  to->Put(stamp.through);
  to->Put(static_cast<uint8_t>(stamp.plan.kind));
  to->Put(stamp.plan.pieces_max);
  to->Put(stamp.plan.piece_bytes);
  to->Put(stamp.plan.degraded);
  to->Put(stamp.plan.kept);
  to->Put(stamp.plan.y);
  to->Put(static_cast<uint32_t>(stamp.plan.parts.size()));
  for (const uint32_t part : stamp.plan.parts) to->Put(part);
}

void Write(const MemberState& state, Writer* to) {
  to->Put(static_cast<uint8_t>(Type::kMemberState));
  to->Put(state.member);
  to->Put(state.number);
  to->Put(state.bytes_per_s);
  to->Put(static_cast<uint32_t>(state.unreachable.size()));
  for (const uint32_t member : state.unreachable) to->Put(member);
}

void Write(const GroupFailure& failure, Writer* to) {
  to->Put(static_cast<uint8_t>(Type::kFailure));
  to->Put(failure.text);
}

std::string ReadText(ByteReader* from) {
  const auto length = from->Get<uint16_t>();
  if (length > kTextCharsMax) from->Fail();
  return from->TakeText(length);
}

Stamp ReadStamp(ByteReader* from) {
  Stamp stamp;
  stamp.epoch = from->Get<uint64_t>();
  stamp.from = from->Get<uint64_t>();
  stamp.through = from->Get<uint64_t>();
  stamp.plan.kind = static_cast<PlanSpec::Kind>(from->Get<uint8_t>());
  stamp.plan.pieces_max = from->Get<uint32_t>();
  stamp.plan.piece_bytes = from->Get<uint64_t>();
  stamp.plan.degraded = from->Get<uint32_t>();
  stamp.plan.kept = from->Get<uint32_t>();
  stamp.plan.y = from->Get<uint32_t>();
  const auto parts = from->Get<uint32_t>();
  for (uint32_t i = 0; i < parts && from->left() > 0; ++i) stamp.plan.parts.push_back(from->Get<uint32_t>());
  return stamp;
}

MemberState ReadMemberState(ByteReader* from) {
  MemberState state;
  state.member = from->Get<uint32_t>();
  state.number = from->Get<uint64_t>();
  state.bytes_per_s = from->Get<uint64_t>();
  const auto count = from->Get<uint32_t>();
  for (uint32_t i = 0; i < count && from->left() > 0; ++i) state.unreachable.push_back(from->Get<uint32_t>());
  if (state.unreachable.size() != count) from->Fail();
  return state;
}

// Empty if a member of a group of so many may say it of itself.
std::string CheckMemberState(const MemberState& state, uint32_t members) {
  if (state.member >= members) return "it is of member " + std::to_string(state.member) + " of " + std::to_string(members);
  uint32_t least = 0;
  for (const uint32_t other : state.unreachable) {
    if (other < least || other >= members || other == state.member)
      return "it names member " + std::to_string(other) + " as one that " + std::to_string(state.member) + " does not reach";
    least = other + 1;
  }
  return "";
}

}  // namespace

Bytes Encode(const OperationOffer& offer) {
  Writer writer;
  writer.Put(static_cast<uint16_t>(offer.type));
  writer.Put(static_cast<uint16_t>(offer.op));
  writer.Put(offer.operation);
  writer.Put(offer.epoch);
  writer.Put(offer.count);
  return writer.Take();
}

std::string Compare(std::span<const std::byte> theirs, const OperationOffer& ours) {
  ByteReader reader(theirs);
  if (std::string wrong = ReadHeader(&reader); !wrong.empty()) return wrong;
  const auto type = reader.Get<uint16_t>();
  const auto op = reader.Get<uint16_t>();
  const auto operation = reader.Get<uint64_t>();
  const auto epoch = reader.Get<uint64_t>();
  const auto count = reader.Get<uint64_t>();
  if (!reader.Done()) return "it is no message of a group";
  std::string differs;
  const auto compare = [&](const char* what, uint64_t there, uint64_t here) {
    if (there != here)
      differs += std::string(differs.empty() ? "" : "; ") + what + " " + std::to_string(there) + ", here " + std::to_string(here);
  };
  compare("operation", operation, ours.operation);
  compare("plan", epoch, ours.epoch);
  compare("count", count, ours.count);
  compare("type", type, static_cast<uint16_t>(ours.type));
  compare("op", op, static_cast<uint16_t>(ours.op));
  return differs;
}

Bytes Encode(const Greeting& greeting) {
  Writer writer;
  writer.Put(greeting.group);
  writer.Put(greeting.members);
  writer.Put(greeting.member);
  writer.Put(static_cast<uint8_t>(greeting.control));
  writer.Put(greeting.slot);
  writer.Put(greeting.from_lane);
  writer.Put(greeting.to_lane);
  return writer.Take();
}

std::optional<Greeting> DecodeGreeting(std::span<const std::byte> bytes, std::string* why) {
  ByteReader reader(bytes);
  *why = ReadHeader(&reader);
  if (!why->empty()) return std::nullopt;
  Greeting greeting;
  greeting.group = reader.Get<uint64_t>();
  greeting.members = reader.Get<uint32_t>();
  greeting.member = reader.Get<uint32_t>();
  greeting.control = reader.Get<uint8_t>() != 0;
  greeting.slot = reader.Get<uint32_t>();
  greeting.from_lane = reader.Get<uint32_t>();
  greeting.to_lane = reader.Get<uint32_t>();
  if (reader.Done()) return greeting;
  *why = "it is no greeting of a group";
  return std::nullopt;
}

Bytes Encode(const Message& message) {
  Writer writer;
  std::visit([&](const auto& one) { Write(one, &writer); }, message);
  return writer.Take();
}

std::optional<Message> Decode(std::span<const std::byte> bytes, uint32_t members, std::string* why) {
  ByteReader reader(bytes);
  *why = ReadHeader(&reader);
  if (!why->empty()) return std::nullopt;
  Message message;
  switch (static_cast<Type>(reader.Get<uint8_t>())) {
    case Type::kStamp: {
      const Stamp stamp = ReadStamp(&reader);
      if (std::string wrong = CheckPlanSpec(stamp.plan, members); !wrong.empty() && !IsActive(CollNetMutant::kPlanNotChecked))
        *why = "its plan is none: " + wrong;
      message = stamp;
      break;
    }
    case Type::kMemberState: {
      const MemberState state = ReadMemberState(&reader);
      *why = CheckMemberState(state, members);
      message = state;
      break;
    }
    case Type::kFailure: message = GroupFailure{ReadText(&reader)}; break;
    default: *why = "it is no message of a group";
  }
  if (!reader.Done()) *why = "it is no message of a group";
  if (!why->empty()) return std::nullopt;
  return message;
}

}  // namespace r2cc::collnet
