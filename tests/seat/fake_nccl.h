// NCCL, the CUDA driver and the plugin of several ranks, as far as the interposer sees them: what must match among ranks, what order is
// kept, what is forbidden. Whatever breaks a rule is a failure of the run.
//
// Streams are queues. An operation runs on a rank when it is at the head of its stream, the next of its communicator, and no operation
// runs of that communicator, its child or its parent; it ends when it runs on all ranks. So operations of a parent and its child that
// ranks start in different orders stand still for ever, as kernels do that find no room beside each other.
//
// The program's communicators may have CollNet. A child of such a communicator has none: NCCL refuses it, unless the child shares its
// parent's resources.
#ifndef R2CC_TESTS_SEAT_FAKE_NCCL_H_
#define R2CC_TESTS_SEAT_FAKE_NCCL_H_

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "nccl/seams.h"
#include "tests/seat/scheduler.h"

namespace r2cc::nccl {

struct Operation;

// One for all ranks.
struct Group {
  std::vector<int> members;  // ranks of the world, by rank in here
  std::vector<std::shared_ptr<Operation>> operations;
  std::vector<size_t> enqueued;                            // by rank in here: how many
  bool by_program() const { return split_of == nullptr; }  // not a child of the interposer's
  std::map<int, int> splitting;                            // rank in here -> key
  int splits = 0;
  Group* split_of = nullptr;          // null: the program made it
  Group* split_into = nullptr;        // the last one
  std::optional<plan::Way> last_way;  // of the last large operation of it and of its children
};

struct FakeComm {
  Group* group = nullptr;
  int rank = 0;  // in the group
  FakeComm* parent = nullptr;
  bool blocks = true;
  plan::Way way = plan::Way::kUsual;  // as the tuner was asked
  uint64_t number = 0;                // in the tuner
  bool ended = false;                 // destroyed or aborted
  bool aborted = false;
  Result error = Result::kSuccess;
  std::optional<AllReduceCall> in_progress;
  std::deque<std::shared_ptr<Operation>> order;  // of this rank
  std::map<void*, void*> registered;             // handle -> buffer
};

struct Operation {
  Group* group = nullptr;
  AllReduceCall call;                // of the first rank
  std::vector<AllReduceCall> calls;  // by rank in the group
  std::vector<plan::Way> ways;       // by which NCCL does it
  std::vector<bool> running;
  bool differs = false;  // ranks called with different arguments: nothing is written
};

struct StreamItem {
  std::shared_ptr<Operation> operation;  // or
  Event record = nullptr;                // or
  Event wait = nullptr;
  uint64_t number = 0;  // of the event
  FakeComm* comm = nullptr;
};

// What a seed makes of a run.
struct WorldPlan {
  int ranks = 4;
  std::vector<int> node_of;
  std::vector<uint32_t> kept;                     // by node, at first
  std::vector<std::pair<int, uint32_t>> changes;  // node, kept: at any time, in this order
  uint64_t steps_a_change = 40;                   // about
  std::set<std::pair<int, int>> split_fails;      // number of the split of a communicator, rank
  std::set<std::pair<int, int>> mark_fails;
  std::optional<int> register_fails;  // a rank on which no buffer can be registered with a child
  std::optional<int> unable;          // a rank without a plugin
  std::optional<int> bare;            // a rank without the interposer
  std::optional<int> differs;         // a rank with another interval
  std::optional<int> cut_off;         // a rank that has checked in, and reaches the process that decides no more
  uint64_t free_mib = 4096;
  bool offers_collnet = false;
  uint64_t bytes_per_s = 0;  // of a node
  bool blocks = true;
  bool child_breaks = false;  // the child has an error at some time
};

class World {
 public:
  World(uint64_t seed, WorldPlan plan);

  Scheduler& scheduler() { return scheduler_; }
  const WorldPlan& plan() const { return plan_; }
  const std::string& failure() const { return failure_; }
  // The first one is kept.
  void Fail(const std::string& what) { failure_ = failure_.empty() ? what : failure_; }
  uint32_t kept(int node) const { return kept_[static_cast<size_t>(node)]; }
  bool changes_are_over() const { return next_change_ == plan_.changes.size(); }
  // No more steps but those of the GPUs; all changes at once.
  void Quiet();

  // What each rank's streams wait for, for people.
  std::string Describe() const;

  // All ranks' meeting about one of the program's communicators; the production code that decides.
  Roll& roll(const Group* group) { return rolls_[group]; }
  Nanos roll_now() const { return roll_now_; }
  void Want(const Group* group) { wanted_.insert(group); }

  FakeComm* MakeComm(Group* group, int rank_of_world);
  Group* MakeGroup(std::vector<int> members);
  int children_broken() const { return broken_; }
  size_t completed_by_children() const { return by_children_; }
  size_t completed_by_collnet() const { return by_collnet_; }

 private:
  friend class FakeNccl;
  friend class FakeCuda;
  friend class FakeRails;
  struct Rank {
    std::map<Stream, std::deque<StreamItem>> streams;
    std::map<Event, std::pair<uint64_t, uint64_t>> events;       // recorded, done
    std::map<const Group*, std::shared_ptr<Operation>> running;  // by Family()
    std::set<Stream> captured;
    std::vector<std::pair<AllReduceCall, FakeComm*>> graph;
    bool in_group = false;
    std::vector<std::pair<AllReduceCall, FakeComm*>> group_calls;
    bool gave_up = false;  // aborted: whoever waits goes on with an error
    std::set<void*> words;
    int watches = 0;
    int marks = 0;
    FakeComm* last_split = nullptr;
    std::optional<size_t> watched_bytes;  // of an AllReduce
    FakeComm* watched = nullptr;          // it was of this one
    int unclear = 0;                      // times that the tuner has seen several
  };

  bool Step();
  bool StepOn(int rank);
  void Enqueue(FakeComm* comm, const AllReduceCall& call);
  // As NCCL does, which asks the tuner.
  plan::Way ChooseWay(FakeComm* comm, const AllReduceCall& call);
  void Complete(const std::shared_ptr<Operation>& operation);
  void Forget(int rank, FakeComm* comm);
  bool HasWork(int rank, const FakeComm* comm) const;
  int WorldRank(const FakeComm* comm) const { return comm->group->members[static_cast<size_t>(comm->rank)]; }

  WorldPlan plan_;
  Scheduler scheduler_;
  std::string failure_;
  std::vector<uint32_t> kept_;
  size_t next_change_ = 0;
  int broken_ = 0;
  size_t by_children_ = 0;
  size_t by_collnet_ = 0;
  std::vector<Rank> ranks_;
  std::vector<std::unique_ptr<Group>> groups_;
  std::vector<std::unique_ptr<FakeComm>> comms_;
  uint64_t next_handle_ = 1;
  std::map<const Group*, Roll> rolls_;
  std::set<const Group*> wanted_;
  Nanos roll_now_ = 0;
};

inline FakeComm* Fake(Comm comm) { return reinterpret_cast<FakeComm*>(comm); }
inline Comm Real(FakeComm* comm) { return reinterpret_cast<Comm>(comm); }

class FakeNccl final : public Nccl {
 public:
  // `ask` is what a program calls as ncclCommGetAsyncError: NCCL calls it, too, within its own functions.
  FakeNccl(World* world, int rank, std::function<void(Comm)> ask) : world_(*world), rank_(rank), ask_(std::move(ask)) {}
  Result AllReduce(const AllReduceCall& call, Comm comm) override;
  Result GroupStart() override;
  Result GroupEnd() override;
  Result Count(Comm comm, int* ranks) override;
  Result Rank(Comm comm, int* rank) override;
  Result Split(Comm comm, int key, Comm* child) override;
  Result SplitOff(Comm, int, int, Comm*, void*) override { return Result::kInvalidUsage; }
  Result Settle(Comm comm) override;
  Result Register(Comm comm, void* buffer, size_t bytes, void** handle) override;
  Result Deregister(Comm comm, void* handle) override;
  Result Finalize(Comm comm) override;
  Result Destroy(Comm comm) override;
  Result Abort(Comm parent, Comm child) override;
  Result Revoke(Comm comm, int flags) override;
  Result AsyncError(Comm comm, Result* error) override;

  // The program's part: captures, and what a program splits itself.
  void BeginCapture(Stream stream);
  void EndCapture(Stream stream);
  void Replay(Stream stream);
  void LeaveAll();
  // All its communicators that are not ended, of the interposer's making or of the program's.
  std::string Leaks() const;

 private:
  World::Rank& own() { return world_.ranks_[static_cast<size_t>(rank_)]; }
  void Launch(FakeComm* comm, const AllReduceCall& call);
  World& world_;
  const int rank_;
  const std::function<void(Comm)> ask_;
};

class FakeCuda final : public Cuda {
 public:
  FakeCuda(World* world, int rank) : world_(*world), rank_(rank) {}
  ~FakeCuda() override;
  bool IsCaptured(Stream stream) override;
  bool MakeEvent(Event* event) override;
  bool Record(Event event, Stream stream) override;
  bool Wait(Stream stream, Event event) override;
  bool Finish(Event event, const std::function<void()>& is_late) override;
  bool Finish(Stream stream) override;
  uint32_t* AllocateWords(size_t words) override;
  void Free(Event event) override;
  void FreeWords(uint32_t* words) override;
  uint64_t FreeBytes() override { return world_.plan_.free_mib << 20; }

 private:
  World::Rank& own() { return world_.ranks_[static_cast<size_t>(rank_)]; }
  bool MayWait();
  World& world_;
  const int rank_;
  uint64_t events_ = 0;
  std::vector<std::unique_ptr<uint32_t[]>> words_;
};

class FakeRollCall final : public RollCall {
 public:
  FakeRollCall(World* world, const Group* group, int rank, uint32_t every);
  void Ask() override {}
  Verdict Await() override;
  void End() override { ended_ = true; }

 private:
  World& world_;
  const Group* const group_;
  const int rank_;
  bool ended_ = false;
};

class FakeRails final : public Rails {
 public:
  FakeRails(World* world, int rank) : world_(*world), rank_(rank) {}
  State Look() override;
  void WatchForChild(size_t) override { ++own().watches; }
  bool MarkChild() override;
  void WatchAllReduce(size_t bytes) override { own().watched_bytes = bytes; }
  uint64_t WatchedCommunicator() override;
  bool SetWay(uint64_t number, plan::Way way) override;
  void Report(uint32_t communicator, uint64_t call, const plan::WayDecision& decision) override {
    reports.emplace_back(communicator, call, decision);
  }
  struct Reported {
    uint32_t communicator;
    uint64_t call;
    plan::WayDecision decision;
  };
  std::vector<Reported> reports;

 private:
  World::Rank& own() { return world_.ranks_[static_cast<size_t>(rank_)]; }
  World& world_;
  const int rank_;
};

}  // namespace r2cc::nccl

#endif  // R2CC_TESTS_SEAT_FAKE_NCCL_H_
