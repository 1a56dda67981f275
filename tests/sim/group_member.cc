#include "tests/sim/group_member.h"

#include <algorithm>
#include <utility>

#include "base/core/check.h"

namespace r2cc::sim {
namespace {

using abi::DataType;
using abi::RedOp;

// Not exact in f32: a sum in another order would differ.
float ValueOf(uint32_t member, uint64_t operation, size_t at) {
  return 1.0F / static_cast<float>(1 + member * 7 + operation * 3 + at % 1000);
}

}  // namespace

GroupMember::GroupMember(Process* process, const Options& options, SimFlows::Opened opened)
    : process_(process), options_(options), flows_(process, process->io().options.rails, nullptr, std::move(opened)) {
  const auto make_plan = [](const std::vector<uint64_t>& bytes_per_s, const std::vector<bool>& reach_all) {
    return collnet::PlanFor(bytes_per_s, 16 * 1024, reach_all);
  };
  const auto make_steps = [members = options.members](const collnet::PlanSpec& plan,
                                                      uint64_t bytes) -> std::shared_ptr<const plan::Schedule> {
    return collnet::MakeSchedule(plan, members, bytes);
  };
  driver_.emplace(collnet::GroupDriver::Options{.group = {.members = options.members, .member = options.member}, .number = 1}, make_plan,
                  make_steps, collnet::GroupDriver::Means{&flows_, &reducer_, &staging_});
  for (Vectors& vectors : vectors_) vectors = {std::vector<float>(options.count), std::vector<float>(options.count)};
}

void GroupMember::Progress(uint64_t wanted, int rails_up, Nanos now) {
  driver_->SetCapacity(static_cast<uint64_t>(rails_up) * options_.rail_bytes_per_s);
  driver_->Poll(now);
  if (!driver_->error().empty()) return;
  for (; done_ < called_ && driver_->Done(done_); ++done_) Compare(vectors_[done_ % kWindow].result, done_);
  for (; driver_->connected() && called_ < std::min(wanted, done_ + kWindow); ++called_) {
    Vectors& vectors = vectors_[called_ % kWindow];
    for (size_t at = 0; at < options_.count; ++at) vectors.contribution[at] = ValueOf(options_.member, called_, at);
    R2CC_CHECK(driver_->Call({vectors.contribution.data(), vectors.result.data(), options_.count, DataType::kFloat32, RedOp::kSum}, now)
                   .has_value());
    process_->Wake();
  }
}

void GroupMember::Compare(const std::vector<float>& result, uint64_t operation) {
  for (size_t at = 0; at < options_.count; ++at) {
    float want = ValueOf(0, operation, at);
    for (uint32_t member = 1; member < options_.members; ++member) want += ValueOf(member, operation, at);
    wrong_ += result[at] != want;
  }
}

}  // namespace r2cc::sim
