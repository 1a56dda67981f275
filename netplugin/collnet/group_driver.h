// Runs a group's collective operations at one member, with real bytes: carries out the actions of a MemberExecutor (member_action.h) over
// the flows of a group, and reduces. It has no thread and no clock: its owner calls Poll().
//
// Each FlowName in use is a flow of its own, opened when it is first needed; so is a control flow from each member to each other one. The
// first message of a flow names the member that opened it and its purpose. On its control flows a member reports when it receives from all
// others: the group is connected when all have reported that. Two members without a path to each other need a third from which both
// receive. Nothing is posted on a flow between them before there is a path, because requests that wait for one fail at the deadline. A
// member that ends reports that it leaves: others may still be at their last operation, for which they need nothing more from it.
//
// The memory of an operation belongs to the driver from Call() until the operation is done. If the group fails, the memory of unfinished
// operations may be read and written until the driver is destroyed.
#ifndef R2CC_NETPLUGIN_COLLNET_GROUP_DRIVER_H_
#define R2CC_NETPLUGIN_COLLNET_GROUP_DRIVER_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "netplugin/collnet/flow_queue.h"
#include "netplugin/collnet/group_flows.h"
#include "netplugin/collnet/member_executor.h"
#include "netplugin/collnet/path_monitor.h"
#include "netplugin/collnet/reducer.h"
#include "netplugin/collnet/staging.h"
#include "netplugin/flow/tuning.h"

namespace r2cc::collnet {

// One thread at a time, which is also the thread of the flows.
class GroupDriver {
 public:
  struct Options {
    MemberExecutor::Options group;
    uint64_t number = 0;  // the group's, the same at all members: flows of another group are refused
  };
  // What it needs. All outlive it.
  struct Means {
    GroupFlows* flows = nullptr;
    Reducer* reducer = nullptr;
    Staging* staging = nullptr;
  };
  struct Vectors {
    net::Buffer contribution;
    net::Buffer result;  // may be the same
    uint64_t count = 0;
    abi::DataType type = abi::DataType::kFloat32;
    abi::RedOp op = abi::RedOp::kSum;  // CanReduce() must be true for it and the type
  };

  GroupDriver(const Options& options, MemberExecutor::MakePlan make_plan, MemberExecutor::MakeSteps make_steps, const Means& means);
  // When it returns, nothing touches the memory of operations any more. What this member has sent to the others is still delivered.
  ~GroupDriver();
  GroupDriver(const GroupDriver&) = delete;
  GroupDriver& operator=(const GroupDriver&) = delete;

  // All members receive from each other, and all will learn that from this one, whether or not it is polled.
  bool connected() const { return connected_; }
  // The next operation. Nothing if the group has failed, or if the vector is too long.
  std::optional<OperationId> Call(const Vectors& vectors, Nanos now);
  bool Done(OperationId operation) const { return operation < called_ && vectors_.count(operation) == 0; }
  // See MemberExecutor.
  void SetCapacity(uint64_t bytes_per_s);
  // Members to which no rail has led for a while, in order. See PathMonitor.
  const std::vector<uint32_t>& unreachable() const { return unreachable_; }
  // Makes what progress is possible. True if anything moved.
  bool Poll(Nanos now);
  const Stamp* newest_plan() const { return executor_.newest_plan(); }
  // Why the group failed, in one line; empty while the group works.
  const std::string& error() const { return executor_.error(); }

 private:
  struct Peer {
    uint32_t member = 0;
    net::FlowRef flow = 0;  // `outgoing` uses it once there is a path
    bool ready = false;     // it receives from all members to which it has a path
    bool left = false;      // it sends nothing any more
    FlowQueue outgoing{FlowQueue::Direction::kSends};
    FlowQueue incoming{FlowQueue::Direction::kReceives};
  };
  // An operation that was called and is not done.
  struct Open {
    Vectors vectors;
    net::Buffer staging;
  };
  struct Adding {
    OperationId operation = 0;
    uint32_t block = 0;
    std::unique_ptr<Reducer::Reduction> reduction;
  };

  Peer* Of(uint32_t member) { return &peers_[member < options_.group.member ? member : member - 1]; }
  FlowQueue* Sends(const FlowName& name);
  // If members differ, all flows use all rails.
  void FollowPlan();
  FlowQueue* Receives(const FlowName& name) { return &receives_.try_emplace(name, FlowQueue::Direction::kReceives).first->second; }
  net::Buffer At(OperationId operation, const AreaPlace& place) const;
  void CarryOut();
  void Do(MemberAction action);
  void BeginReduction(const MemberAction& action);
  void SendMessage(Peer* peer, Bytes message);
  void SendCode(Peer* peer, uint32_t code);
  void ExpectMessage(Peer* peer);
  void ObservePaths(Nanos now);
  void Start(Peer* peer);
  void StartIfPath(net::FlowRef flow, FlowQueue* queue);
  bool ReceivesFromAll() const;
  bool IsConnected() const;
  bool IsConnected(const Peer& peer) const;
  bool Accept();
  void Greeted(net::FlowRef flow, std::span<const std::byte> bytes);
  // Judges a greeting of this group. Empty if the flow may be what the greeting states.
  std::string Judge(const Greeting& greeting);
  bool ReceiveMessages(Peer* peer, Nanos now);
  bool PollFlows(Nanos now);
  bool PollReductions(Nanos now);
  void LookForErrors();

  const Options options_;
  const Means means_;
  MemberExecutor executor_;
  std::vector<Peer> peers_;  // all other members, in their order
  std::map<FlowName, FlowQueue> sends_, receives_;
  std::map<net::FlowRef, FlowQueue> half_open_;  // flows without a greeting so far
  std::map<OperationId, Open> vectors_;
  std::vector<Adding> adding_;
  OperationId called_ = 0;
  uint64_t followed_ = 0;  // the newest plan that FollowPlan() has seen
  bool dealt_ = false;
  PathMonitor paths_;
  std::vector<uint32_t> unreachable_;             // from `paths_`
  Nanos observed_ = -net::tuning::kObserveEvery;  // when the paths were observed last
  bool sent_ready_ = false;
  bool connected_ = false;
};

}  // namespace r2cc::collnet

#endif  // R2CC_NETPLUGIN_COLLNET_GROUP_DRIVER_H_
