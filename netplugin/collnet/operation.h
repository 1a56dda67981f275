// Runs one operation at one member, from its first step to its last. MemberProgress knows what is due; this class adds the flow and the
// memory, and adds up what has come. Events in, actions out; see member_action.h.
#ifndef R2CC_NETPLUGIN_COLLNET_OPERATION_H_
#define R2CC_NETPLUGIN_COLLNET_OPERATION_H_

#include <compare>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "netplugin/collnet/member_action.h"
#include "netplugin/collnet/member_layout.h"
#include "netplugin/collnet/message.h"
#include "plan/schedule/member_progress.h"

namespace r2cc::collnet {

// The state of a receive, from when it is due.
enum class ReceiveState : uint8_t {
  kUnderWay,  // its bytes may come
  kAdding,    // they have come, and complete a group that is being added up
  kDone,
};
enum class ReceiveEvent : uint8_t {
  kArrived,    // it arrived, and nothing is to be added yet, or ever
  kCompletes,  // it arrived, as the last of a group
  kAdded,      // all groups that it completes are added up
};

class Operation {
 public:
  // Its flows are those of `slot`. It adds actions to `actions`, which must outlive it.
  Operation(const OperationOffer& offer, Slot slot, std::shared_ptr<const MemberLayout> layout, std::vector<MemberAction>* actions);

  // Call it once.
  void Begin();
  // Each answers the oldest such action of its flow. An answer without an action ends the process. OfferReceived() returns an empty line if
  // the peer's call equals this member's; otherwise the difference.
  std::string OfferReceived(const FlowName& flow, std::span<const std::byte> bytes);
  void SendDone(const FlowName& flow);
  void ReceiveDone(const FlowName& flow);
  void ReduceDone(uint32_t block);

  bool finished() const { return progress_.finished(); }
  const OperationOffer& offer() const { return offer_; }
  Slot slot() const { return slot_; }
  // What it waits for, in one line, for people.
  std::string Waiting() const;

 private:
  // A lane's receive, by its number there.
  struct ReceiveName {
    uint32_t lane = 0;
    uint32_t index = 0;

    friend auto operator<=>(const ReceiveName&, const ReceiveName&) = default;
  };
  struct Block {
    uint32_t groups_done = 0;
    uint32_t arrived = 0;      // contributions of the next group
    ReceiveName completed_by;  // the receive that completed the group that is being added up
  };
  struct Receive {
    ReceiveState state = ReceiveState::kUnderWay;
    uint32_t peer = 0;
    uint32_t sums = 0;  // how many it waits for
  };

  void Step(const ReceiveName& receive, ReceiveEvent event);
  void BeginStep(const plan::MemberProgress::Due& due);
  void BeginSend(const plan::MemberProgress::Due& due);
  void BeginReceive(const plan::MemberProgress::Due& due);
  void FinishSent();
  bool CompletesGroup(const ReceiveName& receive, uint32_t block);
  void Reduce(uint32_t block);
  MemberAction Make(MemberAction::Kind kind, const FlowName& flow) const;

  OperationOffer offer_;
  Slot slot_;
  std::shared_ptr<const MemberLayout> layout_;
  std::vector<MemberAction>* actions_;
  plan::MemberProgress progress_;
  std::set<FlowName> offers_missing_;
  std::vector<Block> blocks_;
  std::map<ReceiveName, Receive> receives_;          // those that are due and not done
  std::vector<std::pair<uint32_t, uint32_t>> sent_;  // lanes and the receives' numbers there, for a mutant
};

}  // namespace r2cc::collnet

#endif  // R2CC_NETPLUGIN_COLLNET_OPERATION_H_
