#include "netplugin/link/rate_estimator.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "netplugin/flow/tuning.h"

namespace r2cc::net {
namespace {

uint16_t ShareOf(double fraction) { return static_cast<uint16_t>(std::clamp(fraction * 1000, tuning::kShareLeast, 1000.0)); }

}  // namespace

void RateEstimator::Sample(LinkId id, uint64_t bytes, Nanos busy, bool limited) {
  Link& link = links_[id];
  link.bytes += bytes;
  link.busy += busy;
  if (busy > 0) link.votes.Add(limited), link.round.Add(limited);
  if (link.bytes < tuning::kBytesLeast || link.busy < tuning::kBusyLeast) return;
  const double rate = static_cast<double>(link.bytes) * kNanosPerSecond / static_cast<double>(link.busy);
  link.rate_bytes_per_s = Known(link) ? tuning::kNewWeight * rate + (1 - tuning::kNewWeight) * link.rate_bytes_per_s : rate;
  link.limiting = link.votes.most();
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
  link.votes = link.round = {};
  link.estimates = 0;
  link.fresh = false;
  link.for_change = 0;
}

bool RateEstimator::Known(const Link& link) { return link.estimates >= tuning::kEstimatesLeast; }

double RateEstimator::Reference(size_t link) const {
  std::vector<double> others;
  double at_limit = 0;
  for (size_t i = 0; i < links_.size(); ++i) {
    const bool held_back = links_[i].straggler && !links_[i].limiting;
    if (i == link || !Known(links_[i]) || held_back) continue;
    others.push_back(links_[i].rate_bytes_per_s);
    if (links_[i].limiting) at_limit = std::max(at_limit, links_[i].rate_bytes_per_s);
  }
  if (others.empty()) return 0;
  std::sort(others.begin(), others.end());
  return std::max(others[(others.size() - 1) / 2], at_limit);
}

std::vector<LinkShare> RateEstimator::OfThisRound(std::span<const LinkShare> shares) const {
  std::vector<LinkShare> round(shares.begin(), shares.end());
  for (size_t i = 0; i < std::min(round.size(), links_.size()); ++i)
    round[i].carried_bytes -= std::min(round[i].carried_bytes, links_[i].judged_bytes);
  return round;
}

void RateEstimator::SharesChanged() {
  for (Link& link : links_) link.judged_bytes = 0;
}

bool RateEstimator::Judge(std::span<const LinkShare> shares) {
  const std::vector<LinkShare> round = OfThisRound(shares);
  if (Spread(round) && BusiestBytes(round) < tuning::kBusiestLeast) return false;
  for (size_t i = 0; i < std::min(shares.size(), links_.size()); ++i) links_[i].judged_bytes = shares[i].carried_bytes;
  bool changed = false;
  for (size_t i = 0; i < links_.size(); ++i) {
    Link& link = links_[i];
    const double reference = Reference(i);
    const bool unused = i < round.size() && round[i].usable && round[i].carried_bytes == 0;
    changed |=
        link.straggler ? JudgeStraggler(&link, reference, CapBinds(round, static_cast<LinkId>(i)), unused) : JudgeSound(&link, reference);
    link.round = {};
  }
  return changed;
}

void RateEstimator::SetStraggler(Link* link, bool straggler) {
  link->straggler = straggler;
  link->for_change = link->unused = 0;
  link->share_permille = 1000;
  if (!straggler) link->estimates = 0;
}

bool RateEstimator::JudgeSound(Link* link, double reference) {
  if (reference == 0 || !std::exchange(link->fresh, false)) return false;
  const double fraction = link->rate_bytes_per_s / reference;
  link->for_change = fraction < tuning::kSlowBelow && link->limiting ? link->for_change + 1 : 0;
  if (link->for_change < tuning::kRoundsToChange) return false;
  SetStraggler(link, true);
  link->share_permille = ShareOf(fraction);
  return true;
}

bool RateEstimator::JudgeStraggler(Link* link, double reference, bool cap_binds, bool unused) {
  double share = link->share_permille / 1000.0;
  if (reference > 0 && std::exchange(link->fresh, false)) {
    const double fraction = link->rate_bytes_per_s / reference;
    // What it moves it can move, at its limit or not. That it moves less says something only of a link at its limit.
    share = link->limiting ? fraction : std::max(fraction, share);
    link->for_change = fraction > tuning::kSoundAbove ? link->for_change + 1 : 0;
  }
  if (cap_binds && !link->round.most()) share = std::max(share, link->share_permille / 1000.0 * tuning::kShareGrowth);
  link->unused = unused ? link->unused + 1 : 0;
  if (link->for_change >= tuning::kRoundsToChange || link->unused >= tuning::kUnusedRoundsMost ||
      (cap_binds && share > tuning::kSoundAbove && !link->round.most())) {
    SetStraggler(link, false);
    return true;
  }
  const int step = ShareOf(share) - link->share_permille;
  if (std::abs(step) < std::min(tuning::kShareStep, link->share_permille / 5)) return false;
  link->share_permille = ShareOf(share);
  return true;
}

double RateEstimator::SlowestBytesPerSecond(std::span<const LinkShare> shares) const {
  double slowest = 0;
  for (size_t link = 0; link < std::min(links_.size(), shares.size()); ++link) {
    const double rate = links_[link].rate_bytes_per_s;
    if (shares[link].usable && shares[link].weight_permille > 0 && rate > 0 && (slowest == 0 || rate < slowest)) slowest = rate;
  }
  return slowest;
}

}  // namespace r2cc::net
