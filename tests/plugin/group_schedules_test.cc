// Schedules over TCP on the loopback: what moves the bytes sees the step list alone, so any that the checker approves gives the sums that
// the list says, to the bit.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "netplugin/collnet/plan_spec.h"
#include "plan/schedule/check.h"
#include "plan/schedule/progress.h"
#include "tests/collnet/random_schedule.h"
#include "tests/plugin/tcp_group.h"

namespace r2cc::net {
namespace {

using collnet::PlanSpec;
using plan::Schedule;
using plan::StepKind;
using Steps = std::shared_ptr<const Schedule>;
using Vector = std::vector<float>;

constexpr size_t kUnderWay = 4;

// Of any size, so that each order of additions rounds differently.
Vector Contribution(uint32_t member, uint64_t operation, size_t elements) {
  std::mt19937_64 random(operation * 1000 + member);
  Vector values(elements);
  for (float& value : values)
    value = std::ldexp(static_cast<float>(static_cast<int64_t>(random() % 20001) - 10000), static_cast<int>(random() % 24));
  return values;
}

// The sums in the schedule's own order: what has come for a block is added up when somebody looks at it, in the members' order.
class Reference {
 public:
  Reference(const Schedule& schedule, const std::vector<Vector>& contributions) : schedule_(schedule), values_(contributions) {
    pending_.resize(values_.size(), std::vector<std::map<uint32_t, Vector>>(schedule_.blocks()));
    plan::Progress progress(schedule_, false);
    std::deque<plan::Transfer> under_way;
    const auto begin = [&](const plan::Transfer& transfer) { under_way.push_back(transfer); };
    for (progress.Start(begin); !under_way.empty(); under_way.pop_front()) {
      Apply(under_way.front());
      progress.Complete(under_way.front(), begin);
    }
    EXPECT_TRUE(progress.finished());
    for (uint32_t member = 0; member < values_.size(); ++member)
      for (uint32_t block = 0; block < schedule_.blocks(); ++block) AddUp(member, block);
  }
  const Vector& Of(uint32_t member) const { return values_[member]; }

 private:
  size_t Begin(uint32_t block) const { return schedule_.RangeOf(block, 1).begin / sizeof(float); }
  size_t End(uint32_t block) const { return schedule_.RangeOf(block, 1).end / sizeof(float); }
  void Apply(const plan::Transfer& transfer) {
    for (uint32_t block = transfer.send.block; block < transfer.send.block + transfer.send.blocks; ++block) {
      AddUp(transfer.from, block);
      const auto from = values_[transfer.from].begin();
      const Vector bytes(from + static_cast<ptrdiff_t>(Begin(block)), from + static_cast<ptrdiff_t>(End(block)));
      if (transfer.receive.kind == StepKind::kReceiveReduce) {
        pending_[transfer.to][block][transfer.from] = bytes;
      } else {
        AddUp(transfer.to, block);
        std::copy(bytes.begin(), bytes.end(), values_[transfer.to].begin() + static_cast<ptrdiff_t>(Begin(block)));
      }
    }
  }
  void AddUp(uint32_t member, uint32_t block) {
    auto& pending = pending_[member][block];
    if (pending.empty()) return;
    float* const value = values_[member].data() + Begin(block);
    pending[member].assign(value, value + (End(block) - Begin(block)));
    for (size_t at = 0; at < End(block) - Begin(block); ++at) {
      float sum = pending.begin()->second[at];
      for (auto each = std::next(pending.begin()); each != pending.end(); ++each) sum += each->second[at];
      value[at] = sum;
    }
    pending.clear();
  }

  const Schedule& schedule_;
  std::vector<Vector> values_;                                    // by member
  std::vector<std::vector<std::map<uint32_t, Vector>>> pending_;  // by member and block: who sent it
};

// One all_reduce of each of these many elements; their number chooses the steps.
void ExpectEachSum(uint32_t members, const std::function<Steps(uint64_t bytes)>& make_steps, const PlanSpec& spec,
                   const std::vector<size_t>& sizes) {
  TcpGroup group({.members = members,
                  .fail_rails = {},
                  .make_plan = [&](const std::vector<uint64_t>&, const std::vector<bool>&) { return spec; },
                  .make_steps = [&](const PlanSpec&, uint64_t bytes) { return make_steps(bytes); }});
  const auto expect = [&](uint32_t member, const TcpGroup::Call& call) {
    const Steps steps = make_steps(call.result.size() * sizeof(float));
    std::vector<Vector> contributions;
    for (uint32_t each = 0; each < members; ++each) contributions.push_back(Contribution(each, call.operation, call.result.size()));
    EXPECT_EQ(std::memcmp(call.result.data(), Reference(*steps, contributions).Of(member).data(), call.result.size() * sizeof(float)), 0)
        << steps->name() << " of " << members << ", " << call.result.size() << " elements, member " << member;
  };
  const auto done = [&] {
    bool all = true;
    for (uint32_t i = 0; i < members; ++i) {
      auto& member = group.members()[i];
      while (member.calls.size() < kUnderWay && member.called < sizes.size())
        group.CallNext(i, Contribution(i, member.called, sizes[member.called]));
      all &= member.done == sizes.size();
    }
    return all;
  };
  ASSERT_TRUE(group.RunUntil(done, expect));
}

TEST(GroupSchedules, AnyScheduleThatTheCheckerApproves) {
  constexpr size_t kSchedulesEach = 50;
  for (const uint32_t members : {2, 3, 4, 5}) {
    std::vector<size_t> sizes;
    for (size_t i = 0; i < kSchedulesEach; ++i) sizes.push_back(8000 + 4 * i);
    const auto make_steps = [members](uint64_t bytes) -> Steps {
      return std::make_shared<collnet_test::RandomSchedule>(members, bytes, bytes * 10 + members);
    };
    for (const size_t size : sizes) ASSERT_EQ(plan::CheckSchedule(*make_steps(size * sizeof(float))), "");
    ExpectEachSum(members, make_steps, collnet::PlanFor(std::vector<uint64_t>(members, 1), PlanSpec::kPieceBytesMin), sizes);
  }
}

TEST(GroupSchedules, EachGenerator) {
  constexpr uint32_t kMembers = 5;
  const std::vector<uint64_t> half = {4, 2, 4, 4, 4};
  PlanSpec direct = collnet::PlanFor(half, 65'536), ring, r2cc, optcc, recursive;
  ring.kind = PlanSpec::Kind::kRing;
  r2cc.kind = PlanSpec::Kind::kR2ccAllReduce;
  optcc.kind = PlanSpec::Kind::kOptcc;
  recursive.kind = PlanSpec::Kind::kRecursive;
  for (PlanSpec* const spec : {&r2cc, &optcc, &recursive}) {
    spec->pieces_max = 8;
    spec->piece_bytes = 16'384;
    spec->degraded = 1;
    spec->kept = PlanSpec::kWhole / 2;
    spec->y = PlanSpec::kWhole / 2;
  }
  for (const uint64_t rate : half) recursive.parts.push_back(static_cast<uint32_t>(rate * PlanSpec::kWhole / 4));
  for (const PlanSpec* const spec : {&direct, &ring, &r2cc, &optcc, &recursive}) {
    ASSERT_EQ(collnet::CheckPlanSpec(*spec, kMembers), "");
    ExpectEachSum(kMembers, [spec](uint64_t bytes) -> Steps { return collnet::MakeSchedule(*spec, kMembers, bytes); }, *spec,
                  {1, 1000, 65'537, 250'000, 250'000, 3});
  }
}

}  // namespace
}  // namespace r2cc::net
