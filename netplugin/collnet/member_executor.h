// A group's collective operations at one member: several at a time, each by the schedule that member 0 has stamped for it.
//
// Events in, actions out (action.h): no I/O, no clock, no memory; one thread at a time. Whoever drives it moves bytes over flows (one for
// each FlowName that is used), carries messages to peers in order and without loss, and reduces.
//
//   - Operations are numbered as they are called, and begin in that order. Operation n uses the flows of slot n mod `slots`, and waits for
//     operation n - slots to be done: so what travels on a flow belongs to one operation at a time, whatever the other member is at.
//   - An operation's first message on each flow says what its member was called with. Members that differ give the group up before any of
//     them has a result: each result holds contributions of all, and each way from a contribution to it was compared.
//   - Two members may have no path to each other. Then plans have no step between them, and all others forward member 0's stamps to whoever
//     does not hear it, and to member 0 what such a member says of itself. Whoever reaches a member again tells it all from the beginning.
//     So each way carries the stamps in their order, some of them again, and it does not matter which way is the quicker.
//   - A failure is final and told to all members once. Then nothing is done any more, and no answer to an action is needed.
#ifndef R2CC_NETPLUGIN_COLLNET_MEMBER_EXECUTOR_H_
#define R2CC_NETPLUGIN_COLLNET_MEMBER_EXECUTOR_H_

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/core/clock.h"
#include "netplugin/collnet/member_action.h"
#include "netplugin/collnet/member_layout.h"
#include "netplugin/collnet/member_states.h"
#include "netplugin/collnet/message.h"
#include "netplugin/collnet/operation.h"
#include "netplugin/collnet/plan_book.h"

namespace r2cc::collnet {

class MemberExecutor {
 public:
  struct Options {
    uint32_t members = 2;
    uint32_t member = 0;
    // NCCL has at most 8 steps of a buffer under way; more operations than that wait here.
    Slot slots = 8;
    // Twice what is under way: a stamp that is told when half of it is used up is there before it is needed.
    OperationId ahead = 16;
    // While operations are called and nothing at all happens for so long, somebody is gone or never calls. 0: for ever.
    Nanos deadline = 0;
  };
  // What a plan is made of, on member 0, and what steps are made of a plan, the same on all. Pure.
  using MakePlan = std::function<PlanSpec(const std::vector<uint64_t>& bytes_per_s, const std::vector<bool>& reach_all)>;
  using MakeSteps = std::function<std::shared_ptr<const plan::Schedule>(const PlanSpec& plan, uint64_t bytes)>;

  // `make_plan` may be empty but on member 0.
  MemberExecutor(const Options& options, MakePlan make_plan, MakeSteps make_steps);

  // ---- events ----

  // The caller's next operation, of CanReduce(). Nothing if the group has failed, or if the vector is longer than an operation may be.
  std::optional<OperationId> Call(uint64_t count, abi::DataType type, abi::RedOp op, Nanos now);
  // What this member's rails can carry together, each way. Said before the first call, it holds from the first operation on.
  void SetCapacity(uint64_t bytes_per_s);
  // To whom this member has no path, in order; nobody until then. The others are told with the first capacity.
  void SetUnreachable(std::vector<uint32_t> members);

  // Answers to actions; each to the oldest such one of its flow that has none yet.
  void OfferReceived(const FlowName& flow, std::span<const std::byte> bytes, Nanos now);
  void SendDone(const FlowName& flow, Nanos now);
  void ReceiveDone(const FlowName& flow, Nanos now);
  void ReduceDone(OperationId operation, uint32_t block, Nanos now);

  void MessageReceived(uint32_t peer, std::span<const std::byte> bytes, Nanos now);
  // A flow, or the way to a peer, is gone for good.
  void PeerFailed(uint32_t peer, const std::string& why);
  // For what the driver has seen.
  void GiveUp(const std::string& why);
  void Tick(Nanos now);

  // ---- actions ----

  std::vector<MemberAction> TakeActions() { return std::exchange(actions_, {}); }

  bool failed() const { return !error_.empty(); }
  const std::string& error() const { return error_; }
  // An operation was called that member 0 has not stamped.
  bool waits_for_stamp() const { return begun_ < called_ && book_.Find(begun_) == nullptr; }
  // The plan that the latest operations follow; null on a member that has heard of none.
  const Stamp* newest_plan() const { return book_.newest(); }
  const MemberStates& states() const { return states_; }
  // Operations that were called and are not done.
  size_t open() const { return open_.size(); }

 private:
  Operation* Of(Slot slot);
  void BeginOperations();
  void Begin(OperationId number, const Stamp& stamp);
  void EndIfDone(OperationId number);
  std::shared_ptr<const MemberLayout> LayoutFor(const Stamp& stamp, uint64_t bytes);
  void SayState();
  void Heard(const MemberState& state);
  void Replan();
  void StampMore();
  void TellStamps(uint32_t member);
  // To all that have no path to member 0.
  void Forward(const Stamp& stamp);
  void Tell(uint32_t peer, const Message& message);
  void Fail(const std::string& why, bool tell);

  const Options options_;
  const MakePlan make_plan_;
  const MakeSteps make_steps_;
  std::vector<MemberAction> actions_;
  std::string error_;
  Nanos last_event_ = 0;

  OperationId called_ = 0;                                  // so many so far
  OperationId begun_ = 0;                                   // of them
  std::map<OperationId, OperationOffer> open_;              // called and not done
  std::map<OperationId, std::unique_ptr<Operation>> runs_;  // begun and not done
  PlanBook book_;
  std::map<std::pair<uint64_t, uint64_t>, std::shared_ptr<const MemberLayout>> layouts_;  // by epoch and bytes

  MemberState own_;  // told last; number 0: nothing yet
  MemberStates states_;
  std::optional<Stamper> stamper_;  // member 0's
};

}  // namespace r2cc::collnet

#endif  // R2CC_NETPLUGIN_COLLNET_MEMBER_EXECUTOR_H_
