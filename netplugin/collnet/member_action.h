// Defines what an executor asks of its driver. The executor does no I/O and touches no memory: events go in through its methods, actions
// come out of TakeActions() and are carried out in their order.
#ifndef R2CC_NETPLUGIN_COLLNET_MEMBER_ACTION_H_
#define R2CC_NETPLUGIN_COLLNET_MEMBER_ACTION_H_

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

namespace r2cc::collnet {

// 0, 1, 2, ... in a group: all members call the same operations in the same order.
using OperationId = uint64_t;
// Selects a set of flows. See MemberExecutor.
using Slot = uint32_t;

// Memory of an operation.
enum class Area : uint8_t {
  kContribution,  // the caller's vector; may be the same memory as kResult
  kResult,
  kStaging,  // given by the driver: contributions of others land there
};
struct AreaPlace {
  Area area = Area::kContribution;
  uint64_t offset = 0;  // bytes

  friend bool operator==(const AreaPlace&, const AreaPlace&) = default;
};

// A flow between this member and a peer, one way. Messages stay in order within a flow, but not between flows.
struct FlowName {
  uint32_t peer = 0;
  Slot slot = 0;
  uint32_t from_lane = 0;  // of the member that sends
  uint32_t to_lane = 0;    // of the one that receives

  friend auto operator<=>(const FlowName&, const FlowName&) = default;
};

struct MemberAction {
  enum class Kind : uint8_t {
    kBegin,    // the operation begins: it needs `bytes` of staging until it is done
    kWeight,   // `flow`, which sends, gets `weight` from now on
    kOffer,    // send `message` on `flow` from a copy; no event follows
    kExpect,   // the next message of `flow` is an offer, of `bytes`: OfferReceived()
    kSend,     // the bytes at `place`, which do not change until SendDone()
    kReceive,  // to `place`, which may be written from now on: ReceiveDone()
    kReduce,   // add up `sources`, in this order, to `place`, which may be one of them: ReduceDone()
    kDone,     // the operation is done: nothing touches its memory any more
    kMessage,  // `message` to `peer`, on its control flow
    kFail,     // the group failed: `text` has the reason; sent once, and no operation will be done any more
  };
  Kind kind = Kind::kBegin;
  OperationId operation = 0;
  FlowName flow;
  AreaPlace place;
  uint64_t bytes = 0;
  double weight = 1;
  uint32_t block = 0;  // kReduce: identifies it, together with the operation
  std::vector<AreaPlace> sources;
  uint32_t peer = 0;
  std::vector<std::byte> message;
  std::string text;
};

}  // namespace r2cc::collnet

#endif  // R2CC_NETPLUGIN_COLLNET_MEMBER_ACTION_H_
