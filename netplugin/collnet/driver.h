// A group's collective operations at one member, with real bytes: carries out what an MemberExecutor asks for (action.h) over the flows of
// a group, and reduces. No thread and no clock of its own: whoever has it calls Poll().
//
// Each FlowName that is used is a flow of its own, opened when it is first needed; so is a control flow from each member to each other one.
// The first message of a flow says who has opened it and for what. A member says on its control flows that it hears all others: the group
// is connected when all have said so. Two members without a path to each other need a third that both hear; nothing is posted on a flow
// between them before there is a path, as what waits for one fails at the deadline. A member that ends says that it leaves: others may
// still be at their last operation, for which they need nothing of it.
//
// Memory of an operation belongs to the driver from Call() until it is done. If the group fails, memory of the operations that are not done
// may be read and written until the driver is gone.
#ifndef R2CC_NETPLUGIN_COLLNET_DRIVER_H_
#define R2CC_NETPLUGIN_COLLNET_DRIVER_H_

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

// One thread at a time, that of the flows.
class Driver {
 public:
  struct Options {
    MemberExecutor::Options group;
    uint64_t number = 0;  // the group's, the same at all members: a flow of another group is refused
  };
  // What it works with outlives it.
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
    abi::RedOp op = abi::RedOp::kSum;  // with the type: of CanReduce()
  };

  Driver(const Options& options, MemberExecutor::MakePlan make_plan, MemberExecutor::MakeSteps make_steps, const Means& means);
  // Nothing touches the memory of operations any more when it returns. What this member has told the others is still delivered.
  ~Driver();
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  // All members hear each other, and all will hear so from this one, whether or not it is polled.
  bool connected() const { return connected_; }
  // The next operation. Nothing if the group has failed, or if the vector is too long.
  std::optional<OperationId> Call(const Vectors& vectors, Nanos now);
  bool Done(OperationId operation) const { return operation < called_ && vectors_.count(operation) == 0; }
  // See MemberExecutor.
  void SetCapacity(uint64_t bytes_per_s);
  // Members to which no rail has led for a while, in order. See PathMonitor.
  const std::vector<uint32_t>& unreachable() const { return unreachable_; }
  // Moves what there is to move. True if anything did.
  bool Poll(Nanos now);
  const Stamp* newest_plan() const { return executor_.newest_plan(); }
  // One line; empty while the group works.
  const std::string& error() const { return executor_.error(); }

 private:
  struct Peer {
    uint32_t member = 0;
    net::FlowRef flow = 0;  // `tells` has it once there is a path
    bool ready = false;     // it hears all members to which it has a path
    bool left = false;      // it says nothing any more
    FlowQueue tells{FlowQueue::Direction::kSends};
    FlowQueue hears{FlowQueue::Direction::kReceives};
  };
  // Of an operation that was called and is not done.
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
  // Where members differ, all flows go by all rails.
  void FollowPlan();
  FlowQueue* Receives(const FlowName& name) { return &receives_.try_emplace(name, FlowQueue::Direction::kReceives).first->second; }
  net::Buffer At(OperationId operation, const AreaPlace& place) const;
  void CarryOut();
  void Do(MemberAction action);
  void BeginReduction(const MemberAction& action);
  void Tell(Peer* peer, Bytes message);
  void TellWord(Peer* peer, uint32_t word);
  void ExpectMessage(Peer* peer);
  void ObservePaths(Nanos now);
  void Start(Peer* peer);
  void StartIfPath(net::FlowRef stranger, FlowQueue* queue);
  bool HearsAll() const;
  bool IsConnected() const;
  bool IsConnected(const Peer& peer) const;
  bool Accept();
  void Greeted(net::FlowRef flow, std::span<const std::byte> bytes);
  // Of this group. Empty if a flow may be what it says.
  std::string Judge(const Greeting& greeting);
  bool Hear(Peer* peer, Nanos now);
  bool PollFlows(Nanos now);
  bool PollReductions(Nanos now);
  void LookForErrors();

  const Options options_;
  const Means means_;
  MemberExecutor executor_;
  std::vector<Peer> peers_;  // all other members, in their order
  std::map<FlowName, FlowQueue> sends_, receives_;
  std::map<net::FlowRef, FlowQueue> strangers_;  // that have not greeted
  std::map<OperationId, Open> vectors_;
  std::vector<Adding> adding_;
  OperationId called_ = 0;
  uint64_t followed_ = 0;  // the newest plan that FollowPlan() has seen
  bool dealt_ = false;
  PathMonitor paths_;
  std::vector<uint32_t> unreachable_;             // by it
  Nanos observed_ = -net::tuning::kObserveEvery;  // the paths
  bool said_ready_ = false;
  bool connected_ = false;
};

}  // namespace r2cc::collnet

#endif  // R2CC_NETPLUGIN_COLLNET_DRIVER_H_
