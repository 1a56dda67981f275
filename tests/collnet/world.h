// A group of executors over a network and memory that are made up, in virtual time. One seed is one history: schedules, sizes, types, who
// calls when, how long everything takes, and what goes wrong.
//
// The network does what a transport may: it reads a sender's bytes once more until the send is done, writes a receiver's again until the
// receive is, and tells the two ends in any order. Memory is used again and filled with rubbish as soon as an operation is done.
#ifndef R2CC_TESTS_COLLNET_WORLD_H_
#define R2CC_TESTS_COLLNET_WORLD_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "netplugin/collnet/member_executor.h"

namespace r2cc::collnet_test {

using collnet::Bytes;
using collnet::FlowName;
using collnet::MemberAction;
using collnet::OperationId;

struct Scenario {
  uint64_t seed = 1;
  uint64_t timing_seed = 1;  // of delays alone
  uint32_t members = 3;
  OperationId operations = 20;
  bool random_schedules = true;  // instead of the generators'
  bool direct_only = false;      // of the generators
  bool floats = false;           // f32, f16 and bf16 instead of symbols
  uint32_t replans = 0;          // changes of some member's capacity
  uint32_t cuts = 0;             // pairs that have no path to each other for a while. Direct schedules only
  Nanos deadline = 0;
  // At this operation one member calls something else, or never again; or loses a peer.
  enum class Fault { kNone, kOtherCount, kOtherType, kOtherOp, kNeverCalls, kLosesPeer };
  Fault fault = Fault::kNone;
  OperationId fault_at = 0;
  uint32_t faulty = 0;
};

class World {
 public:
  explicit World(const Scenario& scenario);
  ~World();
  // To its end. Empty if all members end as they should; otherwise the first thing that was wrong.
  std::string Run();

  // What Run() leaves.
  uint64_t results_hash() const { return results_hash_; }             // of all bytes of all results
  const std::vector<std::string>& errors() const { return errors_; }  // by member
  uint64_t plans() const { return plans_.size(); }
  OperationId done(uint32_t member) const;

 private:
  struct Call {
    uint64_t count = 0;
    abi::DataType type = abi::DataType::kUint64;
    abi::RedOp op = abi::RedOp::kSum;
    bool in_place = false;
    bool done = false;
    Bytes contribution, result, staging;
  };

  struct Member {
    std::unique_ptr<collnet::MemberExecutor> executor;
    std::set<uint32_t> unreachable;
    std::map<OperationId, Call> calls;
    std::map<FlowName, double> weights;
    size_t outstanding = 0;
    OperationId done = 0;
  };

  // A flow, both ends.
  struct Pipe {
    struct End {
      bool offer = false;
      FlowName flow;  // as this end calls it
      OperationId operation = 0;
      collnet::AreaPlace place;
      uint64_t bytes = 0;
      Bytes copy;
    };
    std::deque<End> sends, receives;
    bool moving = false;
  };
  using PipeKey = std::tuple<uint32_t, uint32_t, uint32_t, uint32_t, uint32_t>;  // from, to, slot, lanes

  static constexpr Nanos kDelayMost = 1000 * 1000;

  void At(Nanos delay, std::function<void()> what);
  Nanos Delay();
  void Wrong(const std::string& what);
  void CallNext(uint32_t member);
  void CarryOut(uint32_t member);
  void Do(uint32_t member, MemberAction action);
  void SendMail(uint32_t from, uint32_t to, Bytes message);
  void CutPairs();
  void Cut(uint32_t a, uint32_t b, bool cut);
  void WhenPath(uint32_t a, uint32_t b, std::function<void()> what);
  void Move(const PipeKey& key);
  void Deliver(const PipeKey& key);
  void FinishReduce(uint32_t member, const MemberAction& action);
  void FinishOperation(uint32_t member, OperationId number);
  void CheckWeight(uint32_t member, const FlowName& flow, OperationId number, double weight);
  void CheckEnd();
  collnet::PlanSpec MakePlan(const std::vector<uint64_t>& capacities, const std::vector<bool>& reach_all);
  std::shared_ptr<const plan::Schedule> MakeSteps(const collnet::PlanSpec& spec, uint64_t bytes);
  std::byte* Resolve(uint32_t member, OperationId number, collnet::AreaPlace place, uint64_t bytes);

  const Scenario scenario_;
  std::mt19937_64 random_, timing_;
  Nanos now_ = 0;
  uint64_t serial_ = 0;
  std::map<std::pair<Nanos, uint64_t>, std::function<void()>> events_;
  std::vector<std::unique_ptr<Member>> members_;
  std::map<PipeKey, Pipe> pipes_;
  std::map<std::pair<uint32_t, uint32_t>, std::deque<Bytes>> mail_;
  std::set<std::pair<uint32_t, uint32_t>> cut_;  // the lower number first
  std::map<std::pair<uint32_t, uint32_t>, std::vector<std::function<void()>>> waiting_;
  collnet::PlanBook plans_stamped_;
  std::map<uint64_t, bool> plans_;
  std::map<std::pair<uint64_t, uint64_t>, std::shared_ptr<const plan::Schedule>> schedules_;
  std::map<OperationId, uint64_t> result_of_;
  uint64_t results_hash_ = 0;
  std::vector<std::string> errors_;
  std::string wrong_;
};

}  // namespace r2cc::collnet_test

#endif  // R2CC_TESTS_COLLNET_WORLD_H_
