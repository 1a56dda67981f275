#include "tests/cluster/watch.h"

#include <algorithm>
#include <cstdio>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace r2cc::cluster {
namespace {

// A wrong word is repeated by all pages: the first ones tell enough.
constexpr size_t kWrongMax = 1000;

int Number(const std::string& name, const char* format) {
  int number = -1;
  (void)std::sscanf(name.c_str(), format, &number);
  return number;
}

bool IsBad(v1::NicState state) { return state == v1::FAILED || state == v1::DEGRADED || state == v1::SUSPECT; }

}  // namespace

std::string NodeName(int node) {
  char name[16];
  std::snprintf(name, sizeof(name), "n%04d", node);
  return name;
}

std::string RailName(int rail) { return absl::StrCat("rail", rail); }

const char* const kTwins[2] = {"8yn0iYCKYHlIj4-BwPqk", "GReLUrM4wMqfg9yzV3KQ"};

Nic NicOf(const plan::PlannedNic& planned) {
  const auto twin = std::find(std::begin(kTwins), std::end(kTwins), planned.nic);
  return {Number(planned.node, "n%d"), twin != std::end(kTwins) ? static_cast<int>(twin - kTwins) : Number(planned.nic, "rail%d")};
}

void Watch::Forget(int node) {
  for (int rail = 0; rail < rails_; ++rail) states_[static_cast<size_t>(node * rails_ + rail)] = v1::NIC_STATE_UNSPECIFIED;
}

void Watch::Await(const std::vector<Nic>& nics, bool usable, const std::set<int>& nodes, Nanos now) {
  awaited_ = nics;
  usable_ = usable;
  since_ = now;
  delays_.clear();
  missing_ = nodes.size();
  for (size_t node = 0; node < waiting_.size(); ++node) waiting_[node] = nodes.contains(static_cast<int>(node));
}

bool Watch::Knows(const plan::Plan& plan) const {
  return std::all_of(awaited_.begin(), awaited_.end(), [&](const Nic& nic) {
    const std::string node = NodeName(nic.node);
    const std::string name = RailName(nic.rail);
    auto found = std::partition_point(plan.nics.begin(), plan.nics.end(), [&](const auto& one) { return one.node < node; });
    while (found != plan.nics.end() && found->node == node && found->nic != name) ++found;
    if (found == plan.nics.end() || found->node != node) return false;
    return usable_ ? found->weight_permille == plan::kFullWeightPermille : found->weight_permille == 0;
  });
}

bool Watch::IsPathToBroken(const std::string& reason) const {
  return std::any_of(broken_.begin(), broken_.end(), [&](const Nic& nic) {
    return absl::StrContains(reason, absl::StrCat(" and ", NodeName(nic.node), "/", RailName(nic.rail), " only"));
  });
}

void Watch::Wrong(int observer, const std::string& nic, const std::string& what, Nanos now) {
  if (wrong_.size() < kWrongMax)
    wrong_.push_back(absl::StrCat("at ", now / kNanosPerMs, " ms ", NodeName(observer), " says of ", nic, ": ", what));
}

void Watch::OnPage(int node, const plan::Plan& plan, Nanos now) {
  ++pages_;
  for (const plan::PlannedNic& nic : plan.nics)
    if (nic.weight_permille != plan::kFullWeightPermille && nic.state != plan::PlannedState::kProving && !broken_.contains(NicOf(nic)))
      Wrong(node, absl::StrCat(nic.node, "/", nic.nic), absl::StrCat("weight ", nic.weight_permille), now);
  if (!waiting_[static_cast<size_t>(node)] || !Knows(plan)) return;
  waiting_[static_cast<size_t>(node)] = false;
  --missing_;
  delays_.push_back(now - since_);
}

void Watch::OnView(const v1::NodeView& view, int node, Nanos now) {
  ++views_;
  for (int rail = 0; rail < rails_ && rail < view.nics_size(); ++rail) {
    const v1::NicView& nic = view.nics(rail);
    v1::NicState& before = states_[static_cast<size_t>(node * rails_ + rail)];
    if (before == nic.state()) continue;
    before = nic.state();
    if (!IsBad(nic.state())) continue;
    ++verdicts_;
    if (!broken_.contains({node, rail}) && !(paths_allowed_ && nic.state() == v1::DEGRADED && IsPathToBroken(nic.reason())))
      Wrong(node, absl::StrCat(view.node(), "/", nic.name()), absl::StrCat(v1::NicState_Name(nic.state()), ", ", nic.reason()), now);
  }
}

}  // namespace r2cc::cluster
