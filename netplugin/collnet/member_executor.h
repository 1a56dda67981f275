// Runs a group's collective operations at one member: several at a time, each by the schedule that member 0 has stamped for it.
//
// Events in, actions out (member_action.h): no I/O, no clock, no memory; one thread at a time. Its driver moves bytes over flows (one for
// each FlowName in use), carries messages to peers in order and without loss, and reduces.
//
// - Operations are numbered as they are called, and begin in that order. Operation n uses the flows of slot n mod `slots`, and waits for
//   operation n - slots to be done. So the bytes on a flow belong to one operation at a time, whatever the other member does.
// - An operation's first message on each flow has the arguments of its member's call. Members that differ give the group up before any of
//   them has a result: each result holds contributions of all, and each path from a contribution to it was compared.
// - Two members may have no path to each other. Then plans have no step between them. All others forward member 0's stamps to members that
//   it does not reach, and the states of such members to member 0. A member that reaches another one again sends it everything from the
//   beginning. So each path carries the stamps in their order, some of them twice, and it does not matter which path is faster.
// - A failure is final, and is sent to all members once. After that no operation is done, and no answer to an action is needed.
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
    // NCCL has at most 8 steps of a buffer in flight; more operations than that wait here.
    Slot slots = 8;
    // Twice the number in flight: a stamp that is sent when half of it is used up arrives before it is needed.
    OperationId ahead = 16;
    // If operations are called and nothing happens for this time, some member is gone or never calls. 0: no limit.
    Nanos deadline = 0;
  };
  // Makes a plan, on member 0, and makes steps from a plan, the same on all members. Pure.
  using MakePlan = std::function<PlanSpec(const std::vector<uint64_t>& bytes_per_s, const std::vector<bool>& reach_all)>;
  using MakeSteps = std::function<std::shared_ptr<const plan::Schedule>(const PlanSpec& plan, uint64_t bytes)>;

  // `make_plan` may be empty except on member 0.
  MemberExecutor(const Options& options, MakePlan make_plan, MakeSteps make_steps);

  // ---- events ----

  // The caller's next operation, for which CanReduce() is true. Nothing if the group has failed, or if the vector is longer than an
  // operation may be.
  std::optional<OperationId> Call(uint64_t count, abi::DataType type, abi::RedOp op, Nanos now);
  // What this member's rails can carry together, each way. Set before the first call, it applies from the first operation on.
  void SetCapacity(uint64_t bytes_per_s);
  // The members to which this one has no path, in order; none until then. The others learn it with the first capacity.
  void SetUnreachable(std::vector<uint32_t> members);

  // Answers to actions. Each answers the oldest such action of its flow that has no answer yet.
  void OfferReceived(const FlowName& flow, std::span<const std::byte> bytes, Nanos now);
  void SendDone(const FlowName& flow, Nanos now);
  void ReceiveDone(const FlowName& flow, Nanos now);
  void ReduceDone(OperationId operation, uint32_t block, Nanos now);

  void MessageReceived(uint32_t peer, std::span<const std::byte> bytes, Nanos now);
  // A flow, or the path to a peer, is lost forever.
  void PeerFailed(uint32_t peer, const std::string& why);
  // For an error that the driver has seen.
  void GiveUp(const std::string& why);
  void Tick(Nanos now);

  // ---- actions ----

  std::vector<MemberAction> TakeActions() { return std::exchange(actions_, {}); }

  bool failed() const { return !error_.empty(); }
  const std::string& error() const { return error_; }
  // An operation was called that member 0 has not stamped.
  bool waits_for_stamp() const { return begun_ < called_ && book_.Find(begun_) == nullptr; }
  // The plan that the latest operations follow; null on a member that has received none.
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
  void SendState();
  void StateChanged(const MemberState& state);
  void Replan();
  void StampMore();
  void SendStamps(uint32_t member);
  // Sends it to all members that have no path to member 0.
  void Forward(const Stamp& stamp);
  void Send(uint32_t peer, const Message& message);
  void Fail(const std::string& why, bool notify);

  const Options options_;
  const MakePlan make_plan_;
  const MakeSteps make_steps_;
  std::vector<MemberAction> actions_;
  std::string error_;
  Nanos last_event_ = 0;

  OperationId called_ = 0;                                  // how many were called so far
  OperationId begun_ = 0;                                   // how many of them have begun
  std::map<OperationId, OperationOffer> open_;              // called and not done
  std::map<OperationId, std::unique_ptr<Operation>> runs_;  // begun and not done
  PlanBook book_;
  std::map<std::pair<uint64_t, uint64_t>, std::shared_ptr<const MemberLayout>> layouts_;  // by epoch and bytes

  MemberState own_;  // as last sent; number 0: nothing was sent yet
  MemberStates states_;
  std::optional<Stamper> stamper_;  // on member 0
};

}  // namespace r2cc::collnet

#endif  // R2CC_NETPLUGIN_COLLNET_MEMBER_EXECUTOR_H_
