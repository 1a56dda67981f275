// Encodes and decodes the messages between members of a group. Decoded bytes are not trusted: numbers are checked against their bounds,
// plans against CheckPlanSpec(), and text becomes one printable line.
#ifndef R2CC_NETPLUGIN_COLLNET_MESSAGE_H_
#define R2CC_NETPLUGIN_COLLNET_MESSAGE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "netplugin/abi/nccl_types.h"
#include "netplugin/collnet/member_action.h"
#include "netplugin/collnet/plan_spec.h"

namespace r2cc::collnet {

using Bytes = std::vector<std::byte>;

// The version of all messages here, and of the schedules that a generator makes from a PlanSpec: members that differ must not work
// together.
constexpr uint16_t kGroupVersion = 2;

// The first message of an operation on each of its flows: the arguments of the sender's call, and the plan that it follows.
struct OperationOffer {
  OperationId operation = 0;
  uint64_t epoch = 0;
  uint64_t count = 0;
  abi::DataType type = abi::DataType::kFloat32;
  abi::RedOp op = abi::RedOp::kSum;

  friend bool operator==(const OperationOffer&, const OperationOffer&) = default;
};
constexpr uint64_t kOfferBytes = 32;
Bytes Encode(const OperationOffer& offer);
// Empty if `theirs`, as received, equals `ours`; otherwise the difference, in one line: "count 3, here 4".
std::string Compare(std::span<const std::byte> theirs, const OperationOffer& ours);

// Member 0's decision, which never changes: the operations from `from` up to but not including `through` follow this plan. It is sent again
// with a later `through` and all else equal, or with the next epoch from that `through` on.
struct Stamp {
  uint64_t epoch = 0;  // 1, 2, 3, ...
  OperationId from = 0;
  OperationId through = 0;
  PlanSpec plan;

  friend bool operator==(const Stamp&, const Stamp&) = default;
};

// A member's report of itself: to member 0, and once some member has had no path to another, to all. They forward it to member 0 if it does
// not reach member 0 directly.
struct MemberState {
  uint32_t member = 0;
  uint64_t number = 0;                // 1, 2, 3, ... of that member
  uint64_t bytes_per_s = 0;           // what its rails can carry
  std::vector<uint32_t> unreachable;  // members to which it has no path, each once, in order

  friend bool operator==(const MemberState&, const MemberState&) = default;
};

// The sender has given up the group.
struct GroupFailure {
  std::string text;

  friend bool operator==(const GroupFailure&, const GroupFailure&) = default;
};

// The first message of a flow: the member that opened it, and its purpose.
struct Greeting {
  uint64_t group = 0;    // a random number of member 0
  uint32_t members = 0;  // of the group, as the sender knows it
  uint32_t member = 0;   // the sender
  bool control = false;  // it carries messages, and no bytes of operations
  Slot slot = 0;         // this and the lanes: for a flow of operations
  uint32_t from_lane = 0;
  uint32_t to_lane = 0;

  friend bool operator==(const Greeting&, const Greeting&) = default;
};
constexpr uint64_t kGreetingBytes = 33;
Bytes Encode(const Greeting& greeting);
// Nothing, and one line in `why`, if it is no greeting of this release.
std::optional<Greeting> DecodeGreeting(std::span<const std::byte> bytes, std::string* why);

using Message = std::variant<Stamp, MemberState, GroupFailure>;
Bytes Encode(const Message& message);
// No message to a group of `members` members is longer.
constexpr uint64_t MessageBytesMax(uint32_t members) { return 512 + 4 * uint64_t{members}; }
// Nothing, and one line in `why`, if it is no message to a group of `members` members.
std::optional<Message> Decode(std::span<const std::byte> bytes, uint32_t members, std::string* why);

}  // namespace r2cc::collnet

#endif  // R2CC_NETPLUGIN_COLLNET_MESSAGE_H_
