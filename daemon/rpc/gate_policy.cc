#include "daemon/rpc/gate_policy.h"

#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"

namespace r2cc::daemon {

GatePolicy::Greeting GatePolicy::JudgeGreeting(const std::string& host) const {
  const auto found = greetings_.find(host);
  if (found != greetings_.end() && found->second >= kGreetingsPerAddressMax) return Greeting::kAddressHasMany;
  return greeting_ >= kGreetingsMax ? Greeting::kTakeForOldest : Greeting::kTake;
}

void GatePolicy::BeginGreeting(const std::string& host) {
  ++greetings_[host];
  ++greeting_;
}

void GatePolicy::EndGreeting(const std::string& host) {
  const auto found = greetings_.find(host);
  if (--found->second == 0) greetings_.erase(found);
  --greeting_;
}

GatePolicy::Admitted GatePolicy::Admit(const Admission& admission, Nanos now) {
  auto& share = shares_[{admission.group, admission.share}];
  if (share == nullptr)
    share = std::make_unique<Share>(admission.share, admission.group, admission.streams_per_second, admission.streams_burst);
  share->used = now;
  if (share->conversations >= admission.share_max)
    return {nullptr, {"too-many", absl::StrCat(admission.share, " has ", admission.share_max, " connections already")}};
  const auto group = groups_.find(share->group);
  const size_t in_group = group == groups_.end() ? 0 : group->second;
  if (in_group >= admission.group_max)
    return {nullptr, {"too-many", absl::StrCat("there are ", admission.group_max, " connections of ", share->group, " already")}};
  const size_t reserve = admission.group_max / kReservedShare;
  if (share->conversations > 0 && !admission.reserved && in_group >= admission.group_max - reserve)
    return {
        nullptr,
        {"too-many", absl::StrCat("the last ", reserve, " connections of ", share->group,
                                  " are reserved for callers without a connection, and ", admission.share, " has ", share->conversations)}};
  // A conversation costs as much as a stream, at least.
  if (!share->allowance.opened.Take(now))
    return {nullptr, {"too-fast", absl::StrCat(admission.share, " asks for more than ", admission.streams_per_second, " times a second")}};
  ++share->conversations;
  ++groups_[share->group];
  return {share.get(), {}};
}

void GatePolicy::End(Share* share, Nanos now) {
  --share->conversations;
  share->used = now;
  const auto group = groups_.find(share->group);
  if (--group->second == 0) groups_.erase(group);
}

bool GatePolicy::BeginLeaving() {
  if (leaving_ >= kLeavingMax) return false;
  ++leaving_;
  return true;
}

bool GatePolicy::TakeJudging(Nanos now) {
  if (now - judged_ < kJudgeInterval) return false;
  judged_ = now;
  return true;
}

bool GatePolicy::TakeTrimming(Nanos now) {
  if (!WantsTrimming() || now - trimmed_ < kTrimInterval) return false;
  ended_ = 0;
  trimmed_ = now;
  return true;
}

void GatePolicy::ForgetShares(Nanos now) {
  for (auto at = shares_.begin(); at != shares_.end();)
    at = at->second->conversations == 0 && now - at->second->used > kShareKeptFor ? shares_.erase(at) : std::next(at);
}

}  // namespace r2cc::daemon
