#include "daemon/metrics/counters.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

namespace r2cc::daemon {
namespace {

// A label has the values that the code knows: any other value of an event is "other".
constexpr size_t kCausesMax = 24;
constexpr std::string_view kActions[] = {"drain",   "drain-now", "undrain", "weight",    "fail",
                                         "restore", "forget",    "reload",  "drill-end", "stranger"};

}  // namespace

void GrowingSums::Update(Counts now) {
  for (const auto& [group, sources] : now) {
    const auto last = last_.find(group);
    for (const auto& [source, count] : sources) {
      uint64_t before = 0;
      if (last != last_.end())
        if (const auto found = last->second.find(source); found != last->second.end()) before = found->second;
      sums_[group] += count >= before ? count - before : count;
    }
  }
  last_ = std::move(now);
}

uint64_t GrowingSums::Of(const std::string& group) const {
  const auto found = sums_.find(group);
  return found == sums_.end() ? 0 : found->second;
}

void EventCounters::Count(const v1::Event& event) {
  const std::string& kind = event.kind();
  if (kind == "nic-state" && event.node() == node_) {
    const v1::NicState to = event.to_state();
    if (to == v1::SUSPECT || to == v1::DEGRADED || to == v1::FAILED) ++verdicts_[event.nic()];
  } else if (kind == "failover") {
    const bool known = failovers_by_cause_.contains(event.cause()) || failovers_by_cause_.size() < kCausesMax;
    ++failovers_by_cause_[known && !event.cause().empty() ? event.cause() : "other"];
    failover_seconds_.Observe(static_cast<double>(event.duration_ns()) / 1e9);
  } else if (kind == "job-gave-up") {
    ++job_errors_;
  } else if (kind == "duplicate-node") {
    ++duplicate_nodes_;
  } else if (kind == "plan-published") {
    plan_published_ns_ = event.time_ns();
  }
  if (!event.has_audit()) return;
  const std::string& action = event.audit().action();
  const bool known = std::find(std::begin(kActions), std::end(kActions), action) != std::end(kActions);
  ++operator_actions_[known ? action : "other"];
}

uint64_t EventCounters::VerdictsOn(const std::string& nic) const {
  const auto found = verdicts_.find(nic);
  return found == verdicts_.end() ? 0 : found->second;
}

}  // namespace r2cc::daemon
