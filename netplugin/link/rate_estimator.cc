#include "netplugin/link/rate_estimator.h"

#include <algorithm>
#include <cmath>

namespace r2cc::net {
namespace {

// An estimate needs so much: less is noise of timers and bursts.
constexpr Nanos kBusyLeast = 20 * kNanosPerMs;
constexpr uint64_t kBytesLeast = 256 * 1024;
// A slow link that is sound again hardly ever has that, as its cap leaves it idle: it would seem slow for seconds. After so long what it
// has moved counts as moved in the least busy time, so that its rate is at least that.
constexpr Nanos kWaitMost = 200 * kNanosPerMs;
constexpr double kNewWeight = 0.5;
// The first estimate of a link that had nothing to do before is that of empty queues, and of what a shaper let it save.
constexpr int kEstimatesLeast = 2;
// Of what was carried: of less a chunk is too large a part.
constexpr uint64_t kBusiestLeast = 512 * 1024;
// Below this fraction of the others' rate a link is slow, above that one it is sound again.
constexpr double kSlowBelow = 0.6;
constexpr double kSoundAbove = 0.8;
constexpr int kRoundsToChange = 3;
// A link that is idle half of the time limits nobody.
constexpr double kLimitingBusy = 0.5;
constexpr double kShareLeast = 20;
// Smaller corrections of a share are not worth a new start of the account.
constexpr int kShareStep = 50;

}  // namespace

void RateEstimator::Sample(LinkId id, uint64_t bytes, Nanos busy, Nanos wall) {
  Link& link = links_[id];
  link.bytes += bytes;
  link.busy += busy;
  link.wall += wall;
  const bool idle = link.busy < kBusyLeast;
  if (link.bytes < kBytesLeast || (idle && !(link.straggler && link.wall >= kWaitMost))) return;
  double rate = static_cast<double>(link.bytes) * kNanosPerSecond / static_cast<double>(std::max(link.busy, kBusyLeast));
  if (idle) rate = std::max(rate, link.rate_bytes_per_s);
  link.rate_bytes_per_s = Known(link) ? kNewWeight * rate + (1 - kNewWeight) * link.rate_bytes_per_s : rate;
  link.limiting = static_cast<double>(link.busy) >= kLimitingBusy * static_cast<double>(link.wall);
  link.estimates = std::min(link.estimates + 1, kEstimatesLeast);
  link.fresh = Known(link);
  link.bytes = 0;
  link.busy = link.wall = 0;
}

void RateEstimator::Forget(LinkId id) {
  Link& link = links_[id];
  link.rate_bytes_per_s = 0;
  link.bytes = 0;
  link.busy = link.wall = 0;
  link.estimates = 0;
  link.fresh = false;
  link.for_change = 0;
}

bool RateEstimator::Known(const Link& link) { return link.estimates >= kEstimatesLeast; }

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

bool RateEstimator::OthersAtLimit(size_t link) const {
  for (size_t i = 0; i < links_.size(); ++i)
    if (i != link && Known(links_[i]) && links_[i].limiting) return true;
  return false;
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
  if (Spread(round) && BusiestBytes(round) < kBusiestLeast) return false;
  for (size_t i = 0; i < std::min(shares.size(), links_.size()); ++i) links_[i].judged_bytes = shares[i].carried_bytes;
  bool changed = false;
  for (size_t i = 0; i < links_.size(); ++i) {
    Link& link = links_[i];
    const double reference = Reference(i);
    if (!link.fresh || reference == 0) continue;
    link.fresh = false;
    const auto id = static_cast<LinkId>(i);
    const double carried = OthersAtLimit(i) ? CarriedFraction(round, id) : 0;
    const double fraction = std::max(link.rate_bytes_per_s / reference, carried);
    const bool held_back = carried > 0 && CapBinds(round, id);
    const bool speaks = link.straggler ? fraction > kSoundAbove : fraction < kSlowBelow && link.limiting && !held_back;
    link.for_change = speaks ? link.for_change + 1 : 0;
    if (link.for_change >= kRoundsToChange) {
      link.straggler = !link.straggler;
      link.for_change = 0;
      link.share_permille = 1000;
      if (!link.straggler) link.estimates = 0;
      changed = true;
    }
    if (!link.straggler) continue;
    const auto share = static_cast<int>(std::clamp(fraction * 1000, kShareLeast, 1000.0));
    if (std::abs(share - link.share_permille) < kShareStep) continue;
    link.share_permille = static_cast<uint16_t>(share);
    changed = true;
  }
  return changed;
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
