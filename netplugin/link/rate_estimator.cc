#include "netplugin/link/rate_estimator.h"

#include <algorithm>
#include <utility>

#include "netplugin/flow/tuning.h"

namespace r2cc::net {
namespace {

// 0 would be a link that moves nothing, which is silent and not slow.
uint16_t Permille(double fraction) { return static_cast<uint16_t>(std::clamp(fraction * 1000, 1.0, 1000.0)); }

}  // namespace

void RateEstimator::Sample(LinkId id, uint64_t bytes, Nanos busy, bool limited) {
  Link& link = links_[id];
  link.bytes += bytes;
  link.busy += busy;
  if (busy > 0) link.votes.Add(limited);
  // The transport wants to know the rate of a new link soon: the first estimates together take as long as each later one.
  const Nanos busy_least = Known(link) ? tuning::kBusyLeast : tuning::kBusyLeast / tuning::kEstimatesLeast;
  if (link.bytes < tuning::kBytesLeast || link.busy < busy_least) return;
  const double rate = static_cast<double>(link.bytes) * kNanosPerSecond / static_cast<double>(link.busy);
  link.limiting = link.votes.most();
  const double average = Known(link) ? tuning::kNewWeight * rate + (1 - tuning::kNewWeight) * link.rate_bytes_per_s : rate;
  // What it moves it can move, at its limit or not. That it moves less says something only of a link at its limit.
  link.rate_bytes_per_s = link.slow && !link.limiting ? std::max(average, link.rate_bytes_per_s) : average;
  link.estimates = std::min(link.estimates + 1, tuning::kEstimatesLeast);
  link.fresh = Known(link);
  link.bytes = 0;
  link.busy = 0;
  link.votes = {};
}

void RateEstimator::Forget(LinkId id) {
  Link& link = links_[id];
  link.rate_bytes_per_s = 0;
  link.bytes = 0;
  link.busy = 0;
  link.votes = {};
  link.estimates = 0;
  link.fresh = false;
  link.for_change = 0;
}

bool RateEstimator::Known(const Link& link) { return link.estimates >= tuning::kEstimatesLeast; }

double RateEstimator::Reference(size_t link) const {
  std::vector<double> others;
  double at_limit = 0;
  for (size_t i = 0; i < links_.size(); ++i) {
    const bool held_back = links_[i].slow && !links_[i].limiting;
    if (i == link || !Known(links_[i]) || held_back) continue;
    others.push_back(links_[i].rate_bytes_per_s);
    if (links_[i].limiting) at_limit = std::max(at_limit, links_[i].rate_bytes_per_s);
  }
  if (others.empty()) return 0;
  std::sort(others.begin(), others.end());
  return std::max(others[(others.size() - 1) / 2], at_limit);
}

bool RateEstimator::Judge() {
  const auto fresh = std::count_if(links_.begin(), links_.end(), [](const Link& link) { return link.fresh; });
  if (fresh == 0) return false;
  bool changed = false;
  for (size_t i = 0; i < links_.size(); ++i) {
    Link& link = links_[i];
    changed |= link.slow ? JudgeSlow(&link, Reference(i), fresh > (link.fresh ? 1 : 0)) : JudgeSound(&link, Reference(i));
  }
  return changed;
}

void RateEstimator::SetSlow(Link* link, bool slow) {
  link->slow = slow;
  link->for_change = link->unused = 0;
  link->share_permille = 1000;
  if (!slow) link->estimates = 0;
}

bool RateEstimator::JudgeSound(Link* link, double reference) {
  if (reference == 0 || !std::exchange(link->fresh, false)) return false;
  const double fraction = link->rate_bytes_per_s / reference;
  link->for_change = fraction < tuning::kSlowBelow && link->limiting ? link->for_change + 1 : 0;
  if (link->for_change < tuning::kEstimatesLeast) return false;
  SetSlow(link, true);
  link->share_permille = Permille(fraction);
  return true;
}

// One of which nothing is seen is tried again, as if it had just begun.
bool RateEstimator::JudgeSlow(Link* link, double reference, bool others_moved) {
  if (reference == 0 || !std::exchange(link->fresh, false)) {
    link->unused += others_moved;
    if (link->unused < tuning::kUnusedRoundsMost) return false;
    SetSlow(link, false);
    link->rate_bytes_per_s = 0;
    return true;
  }
  const double fraction = link->rate_bytes_per_s / reference;
  link->unused = 0;
  link->share_permille = Permille(fraction);
  link->for_change = fraction > tuning::kSoundAbove ? link->for_change + 1 : 0;
  if (link->for_change < tuning::kEstimatesLeast) return false;
  SetSlow(link, false);
  return true;
}

}  // namespace r2cc::net
