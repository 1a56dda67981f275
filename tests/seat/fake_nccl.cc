#include "tests/seat/fake_nccl.h"

#include <algorithm>
#include <utility>

namespace r2cc::nccl {
namespace {

constexpr int kOwnOperators = 5;
// Elements: what the program sends is 1 KiB or 4 GiB.
constexpr size_t kLargeLeast = size_t{1} << 28;

// A parent and its child share it.
Group* Family(Group& group) { return group.split_of != nullptr ? group.split_of : &group; }

}  // namespace

World::World(uint64_t seed, WorldPlan plan) : plan_(std::move(plan)), scheduler_(seed), kept_(plan_.kept) {
  ranks_.resize(static_cast<size_t>(plan_.ranks));
  scheduler_.SetStep([this] { return Step(); });
}

Group* World::MakeGroup(std::vector<int> members) {
  groups_.push_back(std::make_unique<Group>());
  Group* const group = groups_.back().get();
  group->enqueued.resize(members.size());
  group->members = std::move(members);
  return group;
}

FakeComm* World::MakeComm(Group* group, int rank_of_world) {
  comms_.push_back(std::make_unique<FakeComm>());
  FakeComm* const comm = comms_.back().get();
  comm->group = group;
  comm->rank = static_cast<int>(std::find(group->members.begin(), group->members.end(), rank_of_world) - group->members.begin());
  comm->blocks = plan_.blocks;
  comm->number = comms_.size();
  return comm;
}

void World::Quiet() {
  for (; next_change_ < plan_.changes.size(); ++next_change_)
    kept_[static_cast<size_t>(plan_.changes[next_change_].first)] = plan_.changes[next_change_].second;
}

std::string World::Describe() const {
  std::string text;
  for (size_t rank = 0; rank < ranks_.size(); ++rank)
    for (const auto& [stream, items] : ranks_[rank].streams) {
      if (items.empty()) continue;
      const StreamItem& head = items.front();
      text += "; rank " + std::to_string(rank) + " stream " + std::to_string(reinterpret_cast<uintptr_t>(stream)) + ": ";
      if (head.operation == nullptr) {
        text += head.wait != nullptr ? "waits" : "records";
        continue;
      }
      const auto& all = head.comm->group->operations;
      text += (head.comm->group->by_program() ? "parent" : "child") + std::string("'s operation ") +
              std::to_string(std::find(all.begin(), all.end(), head.operation) - all.begin());
    }
  return text;
}

bool World::Step() {
  if (next_change_ < plan_.changes.size() && scheduler_.Random(plan_.steps_a_change) == 0) {
    const auto& [node, kept] = plan_.changes[next_change_++];
    kept_[static_cast<size_t>(node)] = kept;
    return true;
  }
  const auto first = static_cast<int>(scheduler_.Random(ranks_.size()));
  for (int i = 0; i < plan_.ranks; ++i)
    if (StepOn((first + i) % plan_.ranks)) return true;
  // What is in progress is launched at any time.
  for (const auto& comm : comms_)
    if (comm->in_progress.has_value() && !comm->ended) {
      const AllReduceCall call = *std::exchange(comm->in_progress, std::nullopt);
      Enqueue(comm.get(), call);
      return true;
    }
  // Time passes for those that wait for a verdict.
  for (const Group* group : wanted_)
    if (rolls_[group].Decide(roll_now_).kind == Verdict::Kind::kNone) {
      roll_now_ += kRollGrace / 4;
      return true;
    }
  return false;
}

bool World::StepOn(int rank) {
  Rank& own = ranks_[static_cast<size_t>(rank)];
  for (const auto& [family, operation] : own.running) {
    if (operation == nullptr || !std::all_of(operation->running.begin(), operation->running.end(), [](bool b) { return b; })) continue;
    const bool is_broken = std::any_of(comms_.begin(), comms_.end(), [&, done = operation.get()](const auto& comm) {
      return comm->group == done->group && comm->error != Result::kSuccess;
    });
    if (is_broken) continue;
    Complete(std::shared_ptr<Operation>(operation));
    return true;
  }
  std::vector<Stream> ready;
  for (auto& [stream, items] : own.streams) {
    if (items.empty()) continue;
    const StreamItem& head = items.front();
    if (head.operation != nullptr ? own.running[Family(*head.comm->group)] == nullptr && head.comm->order.front() == head.operation
                                  : head.wait == nullptr || own.events[head.wait].second >= head.number)
      ready.push_back(stream);
  }
  if (ready.empty()) return false;
  std::deque<StreamItem>& items = own.streams[ready[scheduler_.Random(ready.size())]];
  const StreamItem head = items.front();
  if (head.operation != nullptr) {
    own.running[Family(*head.comm->group)] = head.operation;
    head.operation->running[static_cast<size_t>(head.comm->rank)] = true;
    // The child breaks in the middle of an operation.
    if (plan_.child_breaks && !head.comm->group->by_program() && broken_ == 0 && scheduler_.Random(6) == 0) {
      ++broken_;
      head.comm->error = Result::kRemoteError;
    }
    return true;
  }
  if (head.record != nullptr) own.events[head.record].second = std::max(own.events[head.record].second, head.number);
  items.pop_front();
  return true;
}

void World::Enqueue(FakeComm* comm, const AllReduceCall& call) {
  Group& group = *comm->group;
  const auto rank = static_cast<size_t>(comm->rank);
  const size_t number = group.enqueued[rank]++;
  if (number == group.operations.size()) {
    auto made = std::make_shared<Operation>();
    made->group = comm->group;
    made->call = call;
    made->calls.resize(group.members.size());
    made->ways.resize(group.members.size());
    made->running.resize(group.members.size());
    group.operations.push_back(std::move(made));
  }
  const std::shared_ptr<Operation>& operation = group.operations[number];
  if (operation->call.count != call.count || operation->call.type != call.type || operation->call.operation != call.operation) {
    operation->differs = true;
    Fail("ranks differ in operation " + std::to_string(number) + " of a communicator");
  }
  operation->calls[rank] = call;
  operation->ways[rank] = ChooseWay(comm, call);
  comm->order.push_back(operation);
  ranks_[static_cast<size_t>(WorldRank(comm))].streams[call.stream].push_back({.operation = operation, .comm = comm});
}

plan::Way World::ChooseWay(FakeComm* comm, const AllReduceCall& call) {
  const bool has_collnet = plan_.offers_collnet && comm->group->by_program();
  Rank& rank = ranks_[static_cast<size_t>(WorldRank(comm))];
  if (has_collnet && rank.watched_bytes == call.count * sizeof(uint32_t)) rank.watched = comm;
  if (comm->way != plan::Way::kCollNet) return comm->way;
  if (call.count < kLargeLeast) Fail("a small call goes by CollNet");
  if (call.operation >= kOwnOperators) Fail("a call with an operator of the program goes by CollNet");
  return has_collnet ? plan::Way::kCollNet : plan::Way::kUsual;
}

void World::Complete(const std::shared_ptr<Operation>& operation) {
  // Ranks whose tuners choose differently hang or mix up the data.
  const plan::Way way = operation->ways.front();
  if (std::any_of(operation->ways.begin(), operation->ways.end(), [way](plan::Way one) { return one != way; }))
    Fail("ranks go by different ways");
  if (!operation->group->by_program() && way != plan::Way::kTree) Fail("a child goes by no way of its own");
  if (operation->call.count >= kLargeLeast && operation->call.operation < kOwnOperators && operation->call.type == DataType::kFloat32)
    Family(*operation->group)->last_way = way;
  by_collnet_ += way == plan::Way::kCollNet;
  const bool words = operation->call.type == DataType::kUint32;
  if (operation->differs) {
  } else if (words) {
    std::vector<uint32_t> minimum(operation->call.count, UINT32_MAX);
    for (const AllReduceCall& call : operation->calls)
      for (size_t i = 0; i < minimum.size(); ++i) minimum[i] = std::min(minimum[i], static_cast<const uint32_t*>(call.send)[i]);
    for (const AllReduceCall& call : operation->calls) std::copy(minimum.begin(), minimum.end(), static_cast<uint32_t*>(call.receive));
  } else {
    int64_t sum = 0;
    for (const AllReduceCall& call : operation->calls) sum += *static_cast<const int64_t*>(call.send);
    for (const AllReduceCall& call : operation->calls) *static_cast<int64_t*>(call.receive) = sum;
  }
  by_children_ += !operation->group->by_program();
  for (size_t i = 0; i < operation->calls.size(); ++i) {
    Rank& rank = ranks_[static_cast<size_t>(operation->group->members[i])];
    rank.running[Family(*operation->group)] = nullptr;
    std::deque<StreamItem>& items = rank.streams[operation->calls[i].stream];
    items.front().comm->order.pop_front();
    items.pop_front();
  }
}

// Its kernels end.
void World::Forget(int rank, FakeComm* comm) {
  Rank& own = ranks_[static_cast<size_t>(rank)];
  for (auto& [stream, items] : own.streams) std::erase_if(items, [&](const StreamItem& item) { return item.comm == comm; });
  std::shared_ptr<Operation>& running = own.running[Family(*comm->group)];
  if (running != nullptr && running->group == comm->group) running = nullptr;
  // None of them ever ends on the other ranks.
  for (const auto& operation : comm->order) operation->running[static_cast<size_t>(comm->rank)] = false;
  comm->order.clear();
  comm->in_progress.reset();
}

bool World::HasWork(int rank, const FakeComm* comm) const {
  for (const auto& [stream, items] : ranks_[static_cast<size_t>(rank)].streams)
    for (const StreamItem& item : items)
      if (item.comm == comm) return true;
  return false;
}

void FakeNccl::Launch(FakeComm* comm, const AllReduceCall& call) {
  if (comm->in_progress.has_value()) {
    world_.Fail("a communicator that does not block was called while it was in progress");
    return;
  }
  if (call.operation >= kOwnOperators && !comm->group->by_program()) world_.Fail("an operator of the parent was used with its child");
  if (!comm->group->by_program() && comm->parent != nullptr)
    for (const auto& [handle, buffer] : comm->parent->registered)
      if (buffer == call.send &&
          std::none_of(comm->registered.begin(), comm->registered.end(), [&](const auto& one) { return one.second == buffer; }))
        world_.Fail("a buffer that is registered with the parent is not with the child that uses it");
  if (own().captured.count(call.stream) > 0) {
    if (!comm->group->by_program() || comm->way != plan::Way::kUsual) world_.Fail("a captured call goes by no way of NCCL's own");
    own().graph.emplace_back(call, comm);
    return;
  }
  world_.Enqueue(comm, call);
}

Result FakeNccl::AllReduce(const AllReduceCall& call, Comm comm) {
  ask_(comm);
  FakeComm* const of = Fake(comm);
  if (of->aborted) world_.Fail("a communicator is used after its abort");
  world_.scheduler().Yield();
  if (of->aborted || own().gave_up) return Result::kInternalError;
  if (of->ended) {
    world_.Fail("a communicator is used after its end");
    return Result::kInvalidArgument;
  }
  if (own().in_group) {
    own().group_calls.emplace_back(call, of);
    return Result::kSuccess;
  }
  if (!of->blocks && own().captured.empty() && world_.scheduler().Random(2) == 0) {
    if (of->in_progress.has_value()) world_.Fail("a communicator that does not block was called while it was in progress");
    of->in_progress = call;
    return Result::kInProgress;
  }
  Launch(of, call);
  return Result::kSuccess;
}

Result FakeNccl::GroupStart() {
  own().in_group = true;
  return Result::kSuccess;
}

Result FakeNccl::GroupEnd() {
  world_.scheduler().Yield();
  own().in_group = false;
  for (const auto& [call, comm] : std::exchange(own().group_calls, {}))
    if (!comm->aborted) Launch(comm, call);
  return own().gave_up ? Result::kInternalError : Result::kSuccess;
}

Result FakeNccl::Count(Comm comm, int* ranks) {
  ask_(comm);
  *ranks = static_cast<int>(Fake(comm)->group->members.size());
  return Result::kSuccess;
}

Result FakeNccl::Rank(Comm comm, int* rank) {
  ask_(comm);
  *rank = Fake(comm)->rank;
  return Result::kSuccess;
}

Result FakeNccl::Split(Comm comm, int key, Comm* child) {
  ask_(comm);
  FakeComm* const of = Fake(comm);
  if (of->aborted) world_.Fail("a communicator is split after its abort");
  Group& group = *of->group;
  if (own().in_group) world_.Fail("a split in a group");
  if (!own().captured.empty()) world_.Fail("a split in a capture");
  if (world_.HasWork(rank_, of) || of->in_progress.has_value()) world_.Fail("a split while its parent has work");
  const int number = group.splits;
  group.splitting[of->rank] = key;
  if (group.splitting.size() == group.members.size()) {
    std::vector<int> by_key(group.members.size());
    for (size_t i = 0; i < by_key.size(); ++i) by_key[i] = static_cast<int>(i);
    std::stable_sort(by_key.begin(), by_key.end(), [&](int a, int b) { return group.splitting[a] < group.splitting[b]; });
    for (int& one : by_key) one = group.members[static_cast<size_t>(one)];
    group.split_into = world_.MakeGroup(by_key);
    group.split_into->split_of = of->group;
    group.splitting.clear();
    ++group.splits;
  }
  world_.scheduler().Block([&] { return group.splits > number || own().gave_up; });
  if (group.splits == number) return Result::kInternalError;
  own().last_split = nullptr;
  if (world_.plan_.split_fails.count({number, rank_}) > 0) return Result::kUnhandledCudaError;
  FakeComm* const made = world_.MakeComm(group.split_into, rank_);
  own().last_split = made;
  made->parent = of;
  *child = Real(made);
  return Result::kSuccess;
}

Result FakeNccl::Settle(Comm comm) {
  FakeComm* const of = Fake(comm);
  world_.scheduler().Block([&] { return !of->in_progress.has_value() || own().gave_up; });
  return own().gave_up ? Result::kInternalError : Result::kSuccess;
}

Result FakeNccl::Register(Comm comm, void* buffer, size_t, void** handle) {
  ask_(comm);
  if (!Fake(comm)->group->by_program() && world_.plan_.register_fails == rank_) return Result::kSystemError;
  *handle = reinterpret_cast<void*>(world_.next_handle_++);
  Fake(comm)->registered[*handle] = buffer;
  return Result::kSuccess;
}

Result FakeNccl::Deregister(Comm comm, void* handle) {
  ask_(comm);
  if (Fake(comm)->registered.erase(handle) == 0) world_.Fail("a registration that is not there is taken back");
  return Result::kSuccess;
}

Result FakeNccl::Finalize(Comm comm) {
  FakeComm* const of = Fake(comm);
  world_.scheduler().Block([&] { return !world_.HasWork(rank_, of) || own().gave_up; });
  return Result::kSuccess;
}

Result FakeNccl::Destroy(Comm comm) {
  FakeComm* const of = Fake(comm);
  if (of->ended) world_.Fail("a communicator is destroyed twice");
  world_.scheduler().Block([&] { return !world_.HasWork(rank_, of) || own().gave_up; });
  of->ended = true;
  return Result::kSuccess;
}

Result FakeNccl::Abort(Comm parent, Comm child) {
  for (FakeComm* const comm : {Fake(parent), Fake(child)}) {
    if (comm == nullptr) continue;
    if (comm->ended) world_.Fail("a communicator is aborted after its end");
    comm->ended = comm->aborted = true;
    world_.Forget(rank_, comm);
  }
  // The memory is freed, which waits for what runs on the GPU.
  const Group* const family = Family(*Fake(parent)->group);
  world_.scheduler().Block([&, family] { return own().running[family] == nullptr; });
  own().gave_up = true;
  return Result::kSuccess;
}

Result FakeNccl::Revoke(Comm comm, int) {
  world_.Forget(rank_, Fake(comm));
  return Result::kSuccess;
}

Result FakeNccl::AsyncError(Comm comm, Result* error) {
  *error = Fake(comm)->in_progress.has_value() ? Result::kInProgress : Fake(comm)->error;
  return Result::kSuccess;
}

void FakeNccl::BeginCapture(Stream stream) { own().captured.insert(stream); }
void FakeNccl::EndCapture(Stream stream) { own().captured.erase(stream); }

void FakeNccl::Replay(Stream stream) {
  world_.scheduler().Yield();
  if (own().gave_up) return;
  for (auto [call, comm] : own().graph) {
    if (comm->aborted) continue;
    call.stream = stream;
    // What is in progress was called before.
    if (comm->in_progress.has_value()) {
      const AllReduceCall before = *std::exchange(comm->in_progress, std::nullopt);
      world_.Enqueue(comm, before);
    }
    world_.Enqueue(comm, call);
  }
}

std::string FakeNccl::Leaks() const {
  for (const auto& comm : world_.comms_)
    if (world_.WorldRank(comm.get()) == rank_ && !comm->ended)
      return comm->group->by_program() ? "a communicator of the program is left" : "a child is left";
  return "";
}

}  // namespace r2cc::nccl
