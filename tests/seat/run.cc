#include "tests/seat/run.h"

#include <algorithm>
#include <list>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "nccl/interposer.h"
#include "tests/seat/fake_nccl.h"

namespace r2cc::nccl {
namespace {

enum class Do { kReduce, kCapture, kReplay, kGroup, kCustom, kOther, kRegister, kDeregister, kSync, kRenew };

struct Step {
  Do what = Do::kReduce;
  int comm = 0;
  int stream = 0;
  bool is_large = true;
  bool uses_registered = false;
};

constexpr size_t kLarge = size_t{1} << 30, kSmall = 256;  // elements of four bytes
constexpr int kStreams = 2, kCaptureStream = 7;

Stream At(int number) { return reinterpret_cast<Stream>(static_cast<uintptr_t>(number + 1)); }

struct Scenario {
  WorldPlan plan;
  uint32_t every = 2;
  std::vector<Step> steps;
  std::pair<int, size_t> dies = {-1, 0};  // rank, before which step
  bool finalizes = false;
};

Scenario Make(uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](uint64_t n) { return static_cast<int>(random() % n); };
  Scenario scenario;
  WorldPlan& plan = scenario.plan;
  const int nodes = below(8) == 0 ? 2 : 3 + below(3);
  const int per_node = nodes <= 3 && below(2) == 0 ? 2 : 1;
  plan.ranks = nodes * per_node;
  for (int rank = 0; rank < plan.ranks; ++rank) plan.node_of.push_back(below(2) == 0 || per_node == 1 ? rank / per_node : rank % nodes);
  // Whatever was dealt, each node has its ranks.
  for (int rank = 0; per_node > 1 && rank < plan.ranks; ++rank) plan.node_of[static_cast<size_t>(rank)] = rank / per_node;
  const auto kept = [&] { return std::vector<uint32_t>{1000, 1000, 750, 500, 500, 250}[static_cast<size_t>(below(6))]; };
  for (int node = 0; node < nodes; ++node) plan.kept.push_back(below(3) == 0 ? kept() : 1000);
  // One node loses the same and gets it back, again and again; or anything changes.
  const int flaps = below(3) == 0 ? below(static_cast<uint64_t>(nodes)) : -1;
  for (int change = flaps < 0 ? 0 : 3 + below(8); change > 0; --change) plan.changes.emplace_back(flaps, change % 2 == 0 ? 500 : 1000);
  for (int change = flaps >= 0 ? 0 : below(5); change > 0; --change) plan.changes.emplace_back(below(static_cast<uint64_t>(nodes)), kept());
  plan.steps_a_change = std::vector<uint64_t>{40, 200, 600}[static_cast<size_t>(below(3))];
  if (below(4) == 0) plan.split_fails.insert({below(3), below(static_cast<uint64_t>(plan.ranks))});
  if (below(6) == 0) plan.mark_fails.insert({below(3), below(static_cast<uint64_t>(plan.ranks))});
  if (below(12) == 0) plan.register_fails = below(static_cast<uint64_t>(plan.ranks));
  if (below(12) == 0) plan.unable = below(static_cast<uint64_t>(plan.ranks));
  if (below(12) == 0) plan.free_mib = 100;
  if (below(10) == 0) plan.bare = below(static_cast<uint64_t>(plan.ranks));
  if (below(16) == 0) plan.differs = below(static_cast<uint64_t>(plan.ranks));
  if (below(16) == 0) plan.cut_off = below(static_cast<uint64_t>(plan.ranks));
  plan.offers_collnet = below(2) == 0;
  // The rails are the limit, or the processors.
  plan.bytes_per_s = below(4) == 0 ? 50'000'000'000 : 1'000'000'000;
  plan.blocks = below(3) != 0;
  plan.child_breaks = below(8) == 0;
  scenario.every = static_cast<uint32_t>(2 + below(4));
  for (int number = 30 + below(90); number > 0; --number) {
    static constexpr Do kAll[] = {Do::kReduce, Do::kReduce,   Do::kReduce, Do::kReduce, Do::kReduce,
                                  Do::kReduce, Do::kCapture,  Do::kReplay, Do::kGroup,  Do::kCustom,
                                  Do::kOther,  Do::kRegister, Do::kOther,  Do::kSync,   Do::kDeregister};
    Step step{kAll[below(std::size(kAll))], below(5) == 0, below(4) == 0, below(4) != 0, below(3) == 0};
    if (below(40) == 0) step.what = Do::kRenew;
    scenario.steps.push_back(step);
  }
  if (below(10) == 0) scenario.dies = {below(static_cast<uint64_t>(plan.ranks)), static_cast<size_t>(below(scenario.steps.size()))};
  scenario.finalizes = below(2) == 0;
  return scenario;
}

class Program {
 public:
  struct Shared {
    World* world;
    const Scenario* scenario;
    std::map<int, Group*> groups;  // of the program's communicators, by number
    int finished = 0;
    bool abort_now = false;
    size_t switches = 0, refusals = 0, differing = 0, unreached = 0;
  };

  Program(Shared* shared, int rank)
      : shared_(*shared),
        world_(*shared->world),
        rank_(rank),
        nccl_(&world_, rank,
              [this](Comm comm) {
                Result error;
                interposer_.AsyncError(comm, &error);
              }),
        cuda_(&world_, rank),
        rails_(&world_, rank),
        every_(shared->scenario->every + (world_.plan().differs == rank ? 1 : 0)),
        interposer_({&nccl_, &cuda_, &rails_, nullptr, [this](const std::string& line) { Note(line); }, nullptr, every_}) {
    for (Comm& comm : comms_) comm = Begin();
  }

  void Main() {
    const bool ended = Steps();
    ++shared_.finished;
    if (!ended) return;
    for (const auto& [result, expected] : expected_)
      if (*result != expected) world_.Fail("a sum is wrong");
  }

  // As a framework's: aborts when nobody goes on.
  void Watchdog() {
    const auto all = static_cast<int>(world_.plan().ranks);
    world_.scheduler().Block([this, all] { return shared_.abort_now || shared_.finished == all; });
    if (!shared_.abort_now) return;
    for (const Comm comm : comms_) {
      // What a program destroys it does not abort.
      if (Fake(comm)->ended || comm == destroying_) continue;
      Result error = Result::kSuccess;
      interposer_.AsyncError(comm, &error);
      saw_error_ = saw_error_ || (error != Result::kSuccess && error != Result::kInProgress);
      interposer_.Abort(comm);
    }
  }

  // When all has ended.
  std::string Leaks() const { return is_dead_ ? "" : nccl_.Leaks(); }

  bool saw_error() const { return saw_error_; }
  // Of the first communicator; null: it has none.
  std::shared_ptr<Shadow> shadow() { return interposer_.Find(comms_[0]); }
  std::shared_ptr<Shadow> last_shadow() { return last_shadow_; }
  // Of the first communicator alone: the other one may have its own.
  const std::vector<FakeRails::Reported>& reports() const { return reports_; }
  // Of the first communicator's last AllReduce.
  plan::Way last_way() const { return last_way_; }

 private:
  void Note(const std::string& line) {
    shared_.switches += line.find("uses ") != std::string::npos;
    shared_.refusals += line.find("could not make") != std::string::npos;
    shared_.differing += line.find("has another release") != std::string::npos;
    shared_.unreached += line.find("does not answer") != std::string::npos;
  }

  Comm Begin() {
    Group*& group = shared_.groups[begun_++];
    if (group == nullptr) {
      std::vector<int> all;
      for (int rank = 0; rank < world_.plan().ranks; ++rank) all.push_back(rank);
      group = world_.MakeGroup(all);
    }
    const Comm comm = Real(world_.MakeComm(group, rank_));
    // A rank without the interposer has nothing that counts; what it does has the same effects as without it.
    if (world_.plan().bare != rank_)
      interposer_.Begun(comm, std::make_shared<FakeRollCall>(&world_, group, rank_, every_), Result::kSuccess);
    return comm;
  }

  bool Wait(Comm comm, Result result) {
    while (result == Result::kInProgress) {
      world_.scheduler().Yield();
      if (shared_.abort_now) return false;
      Result state = Result::kSuccess;
      interposer_.AsyncError(comm, &state);
      result = state;
    }
    const bool is_expected = shared_.abort_now || world_.children_broken() > 0 || world_.plan().cut_off == rank_;
    if (result != Result::kSuccess && !is_expected) world_.Fail("a call failed");
    return result == Result::kSuccess && !shared_.abort_now;
  }

  bool Destroy(Comm comm) {
    if (shared_.abort_now) return false;
    destroying_ = comm;
    const bool went = Wait(comm, interposer_.Destroy(comm));
    destroying_ = nullptr;
    return went;
  }

  AllReduceCall Call(bool is_large, int stream, bool uses_registered = false) {
    numbers_.push_back(uses_registered && has_buffer_ ? 0 : rank_ + 1 + 100 * static_cast<int64_t>(numbers_.size()));
    int64_t* const send = uses_registered && has_buffer_ ? &registered_buffer_ : &numbers_.back();
    results_.push_back(-1);
    return {send, &results_.back(), is_large ? kLarge : kSmall, DataType::kFloat32, 0, At(stream)};
  }

  // All ranks number their calls alike.
  void Expect(const AllReduceCall& call) {
    const auto ranks = static_cast<int64_t>(world_.plan().ranks);
    const auto* const own = static_cast<const int64_t*>(call.send);
    expected_.emplace_back(static_cast<int64_t*>(call.receive), ranks * (*own - rank_ - 1) + ranks * (ranks + 1) / 2);
  }

  bool Reduce(const AllReduceCall& call, Comm comm) {
    if (shared_.abort_now) return false;
    Expect(call);
    return Wait(comm, interposer_.AllReduce(call, comm));
  }

  bool Steps() {
    const Scenario& scenario = *shared_.scenario;
    for (size_t number = 0; number < scenario.steps.size(); ++number) {
      if (scenario.dies == std::pair{rank_, number}) {
        is_dead_ = true;
        return false;
      }
      if (!One(scenario.steps[number])) return false;
    }
    world_.Quiet();
    for (uint32_t call = 0; call < 10 * scenario.every; ++call)
      if (!Reduce(Call(true, 0), comms_[0])) return false;
    for (int stream = 0; stream < kStreams; ++stream)
      if (!cuda_.Finish(At(stream))) return false;
    last_shadow_ = shadow();
    last_way_ = Fake(comms_[0])->group->last_way.value_or(plan::Way::kUsual);
    for (const FakeRails::Reported& report : rails_.reports)
      if (report.communicator == last_shadow_->number()) reports_.push_back(report);
    for (const Comm comm : comms_) {
      if (scenario.finalizes && !Wait(comm, interposer_.Finalize(comm))) return false;
      if (!Destroy(comm)) return false;
    }
    return true;
  }

  bool One(const Step& step) {
    if (shared_.abort_now) return false;
    Comm& comm = comms_[step.comm];
    switch (step.what) {
      case Do::kReduce: return Reduce(Call(step.is_large, step.stream, step.uses_registered), comm);
      case Do::kCapture: {
        nccl_.BeginCapture(At(kCaptureStream));
        const bool went = Wait(comms_[0], interposer_.AllReduce(Call(step.is_large, kCaptureStream), comms_[0]));
        nccl_.EndCapture(At(kCaptureStream));
        return went;
      }
      // A program that orders its graphs and its other streams itself, as it must.
      case Do::kReplay:
        for (int stream = 0; stream < kStreams; ++stream)
          if (!cuda_.Finish(At(stream))) return false;
        nccl_.Replay(At(step.stream));
        return cuda_.Finish(At(step.stream));
      case Do::kGroup: {
        interposer_.GroupStart();
        for (const int stream : {0, step.stream}) {
          const AllReduceCall call = Call(step.is_large, stream);
          Expect(call);
          if (shared_.abort_now) break;
          interposer_.AllReduce(call, comms_[0]);
        }
        return Wait(comms_[0], interposer_.GroupEnd());
      }
      case Do::kCustom: {
        AllReduceCall call = Call(true, step.stream);
        call.operation = 7;
        return Reduce(call, comms_[0]);
      }
      case Do::kOther: {
        AllReduceCall call = Call(true, 1 - step.stream);
        call.type = DataType::kInt8;
        Expect(call);
        return Wait(comm, interposer_.Other(comm, call.stream, [&] { return nccl_.AllReduce(call, comm); }));
      }
      case Do::kRegister:
        // A rank that cannot register it uses it as it is.
        if (registered_ == nullptr && interposer_.Register(comms_[0], &registered_buffer_, 8, &registered_) != Result::kSuccess)
          registered_ = nullptr;
        has_buffer_ = true;
        return true;
      case Do::kDeregister:
        if (registered_ != nullptr) interposer_.Deregister(comms_[0], registered_);
        registered_ = nullptr;
        has_buffer_ = false;
        return true;
      case Do::kSync: return cuda_.Finish(At(step.stream));
      case Do::kRenew:
        for (int stream = 0; stream < kStreams; ++stream)
          if (!cuda_.Finish(At(stream))) return false;
        if (!Destroy(comms_[1])) return false;
        comms_[1] = Begin();
        return true;
    }
    return true;
  }

  Shared& shared_;
  World& world_;
  const int rank_;
  FakeNccl nccl_;
  FakeCuda cuda_;
  FakeRails rails_;
  const uint32_t every_;
  Interposer interposer_;
  Comm comms_[2];
  Comm destroying_ = nullptr;
  int begun_ = 0;
  bool is_dead_ = false;
  bool saw_error_ = false;
  std::shared_ptr<Shadow> last_shadow_;
  plan::Way last_way_ = plan::Way::kUsual;
  std::vector<FakeRails::Reported> reports_;
  std::list<int64_t> numbers_, results_;
  std::vector<std::pair<int64_t*, int64_t>> expected_;
  int64_t registered_buffer_ = rank_ + 1;
  void* registered_ = nullptr;
  bool has_buffer_ = false;  // on all ranks alike
};

// The machines of all ranks are alike, and as the last values want them.
void CheckEnd(World* world, const std::vector<std::unique_ptr<Program>>& programs, RunResult* result) {
  const WorldPlan& plan = world->plan();
  const std::shared_ptr<Shadow> first = programs[0]->last_shadow();
  for (const auto& program : programs)
    if (program->last_shadow()->machine().state() != first->machine().state()) world->Fail("the ranks' machines differ");
  if ((plan.bare.has_value() || plan.differs.has_value()) && world->completed_by_children() + world->completed_by_collnet() > 0)
    world->Fail("a seat is used although a rank lacks the interposer, or has another interval");
  result->seated_at_end = first->machine().is_switched();
  const plan::WayDecision& used = first->machine().wanted();
  if (programs[0]->last_way() != (result->seated_at_end ? used.way : plan::Way::kUsual))
    world->Fail("the last AllReduce has not gone by the way in use");
  const std::vector<FakeRails::Reported>& reports = programs[0]->reports();
  if (result->seated_at_end && (reports.empty() || reports.back().decision.way != used.way))
    world->Fail("the way in use is not the one that was reported");
  if (!plan.split_fails.empty() || !plan.mark_fails.empty() || plan.register_fails.has_value()) return;
  plan::SeatNodes nodes{.ranks = static_cast<uint32_t>(plan.ranks), .channels = 8};
  for (size_t node = 0; node < plan.kept.size(); ++node) nodes.kept_permille.push_back(world->kept(static_cast<int>(node)));
  const plan::CollNetOffer collnet{plan.offers_collnet, static_cast<double>(plan.bytes_per_s), 0};
  const plan::WayDecision current = result->seated_at_end ? used : plan::WayDecision();
  const bool wanted = plan.kept.size() > 2 && !plan.unable.has_value() && !plan.bare.has_value() && !plan.differs.has_value() &&
                      plan::DecideWay(nodes, collnet, current).way != plan::Way::kUsual;
  if (plan.free_mib < kChildMib ? result->seated_at_end : result->seated_at_end != wanted)
    world->Fail(wanted ? "no seat is used in the end" : "a seat is used in the end");
}

}  // namespace

RunResult RunSeed(uint64_t seed) {
  const Scenario scenario = Make(seed);
  World world(seed, scenario.plan);
  Program::Shared shared{&world, &scenario, {}};
  std::vector<std::unique_ptr<Program>> programs;
  for (int rank = 0; rank < scenario.plan.ranks; ++rank) programs.push_back(std::make_unique<Program>(&shared, rank));
  for (const auto& program : programs) {
    world.scheduler().Add([&program] { program->Main(); });
    world.scheduler().Add([&program] { program->Watchdog(); });
  }
  world.scheduler().SetWhenStuck([&] {
    const bool expected = (scenario.dies.first >= 0 && shared.finished > 0) || world.children_broken() > 0 || shared.unreached > 0;
    if (!expected || shared.abort_now) {
      world.Fail("nobody can go on" + world.Describe());
      return false;
    }
    return shared.abort_now = true;
  });
  const bool went = world.scheduler().Run();
  RunResult result{.by_children = world.completed_by_children(),
                   .by_collnet = world.completed_by_collnet(),
                   .switches = shared.switches,
                   .refusals = shared.refusals,
                   .differing = shared.differing,
                   .unreached = shared.unreached};
  result.aborts = shared.abort_now;
  if (world.children_broken() > 0 && shared.abort_now && world.failure().empty() &&
      std::none_of(programs.begin(), programs.end(), [](const auto& program) { return program->saw_error(); }))
    world.Fail("the child's error is hidden");
  for (const auto& program : programs)
    if (const std::string left = program->Leaks(); went && !left.empty()) world.Fail(left);
  if (went && !shared.abort_now && world.failure().empty()) CheckEnd(&world, programs, &result);
  result.failure = world.failure();
  return result;
}

}  // namespace r2cc::nccl
