#include "tests/collnet/world.h"

#include <algorithm>
#include <cstring>

#include "netplugin/collnet/reduce.h"
#include "plan/schedule/check.h"
#include "tests/collnet/random_schedule.h"
#include "tests/collnet/values.h"

namespace r2cc::collnet_test {

using abi::DataType;
using abi::RedOp;
using collnet::Area;
using collnet::MemberExecutor;
using collnet::PlanSpec;
using Fault = Scenario::Fault;

namespace {

constexpr size_t kOutstandingMost = 12;  // more than an executor has slots
constexpr uint64_t kElementsMost = 3000;
constexpr size_t kEventsMost = 3'000'000;
constexpr std::byte kRubbish{0xee};

}  // namespace

World::World(const Scenario& scenario)
    : scenario_(scenario), random_(scenario.seed), timing_(scenario.timing_seed), errors_(scenario.members) {
  for (uint32_t member = 0; member < scenario_.members; ++member) {
    MemberExecutor::Options options;
    options.members = scenario_.members;
    options.member = member;
    options.slots = 1 + static_cast<collnet::Slot>(Mix(scenario_.seed, 1) % 8);
    options.ahead = 1 + Mix(scenario_.seed, 2) % 12;
    options.deadline = scenario_.deadline;
    members_.push_back(std::make_unique<Member>());
    members_.back()->executor = std::make_unique<MemberExecutor>(
        options,
        [this](const std::vector<uint64_t>& capacities, const std::vector<bool>& reach_all) { return MakePlan(capacities, reach_all); },
        [this](const PlanSpec& spec, uint64_t bytes) { return MakeSteps(spec, bytes); });
  }
}

World::~World() = default;

OperationId World::done(uint32_t member) const { return members_[member]->done; }

void World::At(Nanos delay, std::function<void()> what) { events_[{now_ + delay, serial_++}] = std::move(what); }

// Mostly short, now and then very long: everything overtakes everything else.
Nanos World::Delay() {
  const Nanos most = timing_() % 8 == 0 ? kDelayMost : kDelayMost / 50;
  return static_cast<Nanos>(timing_() % static_cast<uint64_t>(most));
}

void World::Wrong(const std::string& what) {
  if (wrong_.empty()) wrong_ = "seed " + std::to_string(scenario_.seed) + ": " + what;
}

std::string World::Run() {
  for (uint32_t member = 0; member < scenario_.members; ++member) {
    At(Delay(), [this, member] { CarryOut(member); });
    At(Delay(), [this, member] { CallNext(member); });
    if (scenario_.deadline > 0)
      for (Nanos at = 0; at < 10 * scenario_.deadline; at += scenario_.deadline / 4)
        At(at, [this, member] {
          members_[member]->executor->Tick(now_);
          CarryOut(member);
        });
  }
  for (uint32_t i = 0; i < scenario_.replans; ++i) {
    const auto member = static_cast<uint32_t>(random_() % scenario_.members);
    At(static_cast<Nanos>(random_() % (20 * kDelayMost)), [this, member, rate = 1 + random_() % 4] {
      members_[member]->executor->SetCapacity(rate);
      CarryOut(member);
    });
  }
  if (scenario_.cuts > 0) CutPairs();
  size_t events = 0;
  while (!events_.empty() && wrong_.empty()) {
    const auto first = events_.begin();
    now_ = first->first.first;
    const auto what = std::move(first->second);
    events_.erase(first);
    what();
    if (++events > kEventsMost) Wrong("it does not end");
  }
  CheckEnd();
  return wrong_;
}

// ---- what the job does ----

void World::CallNext(uint32_t number) {
  Member& member = *members_[number];
  const OperationId operation = member.calls.size();
  const bool faulty = number == scenario_.faulty && operation >= scenario_.fault_at;
  if (operation >= scenario_.operations || member.outstanding >= kOutstandingMost || member.executor->failed()) return;
  if (faulty && scenario_.fault == Fault::kNeverCalls) return;
  if (faulty && scenario_.fault == Fault::kLosesPeer && operation == scenario_.fault_at) {
    member.executor->PeerFailed((number + 1) % scenario_.members, "the way is gone");
    return CarryOut(number);
  }
  Call& call = member.calls[operation];
  const uint64_t random = Mix(scenario_.seed, 3, operation);
  call.count = random % 16 == 0 ? 0 : 1 + Mix(random) % kElementsMost;
  call.in_place = Mix(random, number) % 2 == 0;
  if (scenario_.floats) {
    constexpr DataType kTypes[] = {DataType::kFloat32, DataType::kFloat16, DataType::kBfloat16};
    call.type = kTypes[random / 16 % 3];
    call.op = static_cast<RedOp>(random / 64 % 4);
  }
  if (faulty && operation == scenario_.fault_at) {
    if (call.count == 0) call.count = 8;  // nothing to compare where there is nothing to do
    if (scenario_.fault == Fault::kOtherCount) call.count += 1 + random % 40;
    if (scenario_.fault == Fault::kOtherType) call.type = scenario_.floats ? DataType::kInt8 : DataType::kInt64;
    if (scenario_.fault == Fault::kOtherOp) call.op = call.op == RedOp::kSum ? RedOp::kProd : RedOp::kSum;
  } else if (operation == scenario_.fault_at && call.count == 0) {
    call.count = 8;
  }
  const size_t bytes = call.count * collnet::ElementBytes(call.type);
  call.result.assign(bytes, kRubbish);
  call.contribution.assign(bytes, kRubbish);
  Bytes& own = call.in_place ? call.result : call.contribution;
  for (uint64_t i = 0; i < call.count; ++i) {
    const uint64_t symbol = scenario_.floats ? Mix(Mix(scenario_.seed, number), operation, i) & 0xbfffbfffbfffbfff  // no infinity, no NaN
                                             : Symbol(scenario_.seed, number, operation, i);
    std::memcpy(&own[i * collnet::ElementBytes(call.type)], &symbol, collnet::ElementBytes(call.type));
  }
  ++member.outstanding;
  const auto called = member.executor->Call(call.count, call.type, call.op, now_);
  if (!called.has_value() || *called != operation) Wrong("operation " + std::to_string(operation) + " was not taken");
  CarryOut(number);
  At(Delay(), [this, number] { CallNext(number); });
}

void World::FinishOperation(uint32_t number, OperationId operation) {
  Member& member = *members_[number];
  Call& call = member.calls[operation];
  const std::string who = "member " + std::to_string(number) + " operation " + std::to_string(operation);
  if (call.done) return Wrong(who + " is done twice");
  // Later operations, in which they do not, may be done before the failure is heard of; their results are looked at as all others.
  const bool differ = scenario_.fault == Fault::kNeverCalls
                          ? operation >= scenario_.fault_at
                          : scenario_.fault != Fault::kNone && scenario_.fault != Fault::kLosesPeer && operation == scenario_.fault_at;
  if (differ && call.count > 0) return Wrong(who + " is done although the members differ");
  for (uint64_t i = 0; i < call.count && !scenario_.floats; ++i) {
    uint64_t want = 0, got = 0;
    for (uint32_t each = 0; each < scenario_.members; ++each) want += Symbol(scenario_.seed, each, operation, i);
    std::memcpy(&got, &call.result[i * 8], 8);
    if (got == want) continue;
    char text[64];
    std::snprintf(text, sizeof(text), " is %016lx, not %016lx", got, want);
    return Wrong(who + " element " + std::to_string(i) + text);
  }
  const uint64_t hash = HashOf(call.result);
  if (result_of_.emplace(operation, hash).first->second != hash) Wrong(who + " has another result than the first member");
  results_hash_ ^= Mix(hash, operation, number);
  call.done = true;
  std::fill(call.result.begin(), call.result.end(), kRubbish);
  std::fill(call.contribution.begin(), call.contribution.end(), kRubbish);
  std::fill(call.staging.begin(), call.staging.end(), kRubbish);
  ++member.done;
  --member.outstanding;
  At(Delay(), [this, number] { CallNext(number); });
}

// ---- what a driver does ----

void World::CarryOut(uint32_t member) {
  if (const collnet::Stamp* const stamp = members_[0]->executor->newest_plan(); stamp != nullptr) {
    plans_stamped_.Add(*stamp);
    plans_[stamp->epoch] = true;
  }
  for (MemberAction& action : members_[member]->executor->TakeActions()) Do(member, std::move(action));
}

void World::Do(uint32_t number, MemberAction action) {
  Member& member = *members_[number];
  const FlowName& flow = action.flow;
  const PipeKey sends{number, flow.peer, flow.slot, flow.from_lane, flow.to_lane};
  const PipeKey receives{flow.peer, number, flow.slot, flow.from_lane, flow.to_lane};
  switch (action.kind) {
    case MemberAction::Kind::kBegin: member.calls[action.operation].staging.assign(action.bytes, kRubbish); break;
    case MemberAction::Kind::kWeight: member.weights[flow] = action.weight; break;
    case MemberAction::Kind::kOffer:
      pipes_[sends].sends.push_back({true, flow, action.operation, {}, action.message.size(), action.message});
      Move(sends);
      break;
    case MemberAction::Kind::kExpect:
      pipes_[receives].receives.push_back({true, flow, action.operation, {}, action.bytes, {}});
      Move(receives);
      break;
    case MemberAction::Kind::kSend:
      CheckWeight(number, flow, action.operation, member.weights[flow]);
      pipes_[sends].sends.push_back({false, flow, action.operation, action.place, action.bytes, {}});
      Move(sends);
      break;
    case MemberAction::Kind::kReceive:
      pipes_[receives].receives.push_back({false, flow, action.operation, action.place, action.bytes, {}});
      Move(receives);
      break;
    case MemberAction::Kind::kReduce: At(Delay(), [this, number, action] { FinishReduce(number, action); }); break;
    case MemberAction::Kind::kDone: FinishOperation(number, action.operation); break;
    case MemberAction::Kind::kMessage: SendMail(number, action.peer, std::move(action.message)); break;
    case MemberAction::Kind::kFail:
      if (!errors_[number].empty()) Wrong("member " + std::to_string(number) + " fails twice");
      errors_[number] = action.text;
      break;
  }
}

std::byte* World::Resolve(uint32_t number, OperationId operation, collnet::AreaPlace place, uint64_t bytes) {
  Call& call = members_[number]->calls[operation];
  Bytes& area = place.area == Area::kStaging                   ? call.staging
                : place.area == Area::kResult || call.in_place ? call.result
                                                               : call.contribution;
  if (place.offset + bytes > area.size()) Wrong("member " + std::to_string(number) + " goes beyond its memory");
  return wrong_.empty() ? area.data() + place.offset : nullptr;
}

// What the plan that member 0 has stamped says of the lane.
void World::CheckWeight(uint32_t number, const FlowName& flow, OperationId operation, double weight) {
  const collnet::Stamp* const stamp = plans_stamped_.Find(operation);
  const Call& call = members_[number]->calls[operation];
  if (stamp == nullptr) return Wrong("operation " + std::to_string(operation) + " begins before it is stamped");
  const auto schedule = MakeSteps(stamp->plan, call.count * collnet::ElementBytes(call.type));
  if (scenario_.fault == Fault::kOtherCount) return;  // it makes other steps
  if (schedule->Weight(number, flow.from_lane) != weight)
    Wrong("member " + std::to_string(number) + " lane " + std::to_string(flow.from_lane) + " sends with the weight " +
          std::to_string(weight) + ", not " + std::to_string(schedule->Weight(number, flow.from_lane)));
}

void World::FinishReduce(uint32_t number, const MemberAction& action) {
  Member& member = *members_[number];
  if (member.executor->failed()) return;
  const Call& call = member.calls[action.operation];
  std::vector<const std::byte*> sources;
  for (const collnet::AreaPlace& place : action.sources) sources.push_back(Resolve(number, action.operation, place, action.bytes));
  std::byte* const to = Resolve(number, action.operation, action.place, action.bytes);
  if (!wrong_.empty()) return;
  collnet::Reduce(call.type, call.op, sources, to, action.bytes / collnet::ElementBytes(call.type));
  member.executor->ReduceDone(action.operation, action.block, now_);
  CarryOut(number);
}

// ---- plans ----

PlanSpec World::MakePlan(const std::vector<uint64_t>& capacities, const std::vector<bool>& reach_all) {
  PlanSpec spec = collnet::PlanFor(capacities, PlanSpec::kPieceBytesMin, reach_all);
  uint64_t hash = Mix(scenario_.seed, 4);
  for (const uint64_t capacity : capacities) hash = Mix(hash, capacity);
  spec.pieces_max = 1 + hash % 8;
  if (scenario_.direct_only || scenario_.cuts > 0) return spec;
  const auto members = static_cast<uint32_t>(capacities.size());
  PlanSpec other = spec;
  other.kind = static_cast<PlanSpec::Kind>(1 + Mix(hash) % 5);
  other.degraded = static_cast<uint32_t>(Mix(hash, 1) % members);
  other.kept = 1 + static_cast<uint32_t>(Mix(hash, 2) % (PlanSpec::kWhole - 1));
  other.y = static_cast<uint32_t>(Mix(hash, 3) % PlanSpec::kWhole);
  if (other.kind == PlanSpec::Kind::kRecursive) {
    for (uint32_t i = 0; i < members; ++i) other.parts[i] = i < 2 ? PlanSpec::kWhole : 1 + Mix(hash, i) % PlanSpec::kWhole;
  }
  return collnet::CheckPlanSpec(other, members).empty() ? other : spec;
}

std::shared_ptr<const plan::Schedule> World::MakeSteps(const PlanSpec& spec, uint64_t bytes) {
  std::shared_ptr<const plan::Schedule>& schedule = schedules_[{HashOf(spec), bytes}];
  if (schedule != nullptr) return schedule;
  if (scenario_.random_schedules)
    schedule = std::make_shared<RandomSchedule>(scenario_.members, bytes, HashOf(spec));
  else
    schedule = collnet::MakeSchedule(spec, scenario_.members, bytes);
  if (const std::string wrong = plan::CheckSchedule(*schedule); !wrong.empty()) Wrong(schedule->name() + ": " + wrong);
  return schedule;
}

void World::CheckEnd() {
  for (uint32_t number = 0; number < scenario_.members && wrong_.empty(); ++number) {
    const Member& member = *members_[number];
    const std::string who = "member " + std::to_string(number);
    if (scenario_.fault == Fault::kNone) {
      if (!errors_[number].empty()) Wrong(who + " fails: " + errors_[number]);
      if (member.done != scenario_.operations)
        Wrong(who + " has done " + std::to_string(member.done) + " of " + std::to_string(scenario_.operations) + " operations");
    } else if (errors_[number].empty()) {
      Wrong(who + " does not fail");
    }
    for (const auto& [operation, call] : member.calls) {
      const auto untouched = [](const Bytes& bytes) {
        return std::all_of(bytes.begin(), bytes.end(), [](std::byte byte) { return byte == kRubbish; });
      };
      if (call.done && !(untouched(call.result) && untouched(call.contribution) && untouched(call.staging)))
        Wrong(who + " operation " + std::to_string(operation) + " was written after it was done");
    }
  }
}

}  // namespace r2cc::collnet_test
