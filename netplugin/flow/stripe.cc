#include "netplugin/flow/stripe.h"

#include <algorithm>
#include <limits>

#include "netplugin/flow/tuning.h"
#include "plan/model.h"

namespace r2cc::net {

bool Spread(std::span<const LinkShare> links) {
  for (const LinkShare& link : links)
    if (link.home && (link.slow || !link.usable || link.weight_permille != links.front().weight_permille)) return true;
  return false;
}

bool Carries(std::span<const LinkShare> links, StripeMode mode, bool striped, LinkId home, LinkId link) {
  if (mode == StripeMode::kOneRail) return link == home;
  if (mode == StripeMode::kBalance) return link == home || striped;
  for (size_t i = 0; i < links.size(); ++i) {
    const auto candidate = static_cast<LinkId>((home + i) % links.size());
    if (links[candidate].usable && links[candidate].weight_permille > 0) return candidate == link;
  }
  return true;
}

bool IsFull(const LinkShare& link) { return link.usable && !link.slow && link.weight_permille >= plan::kFullWeightPermille; }

LinkId SmallMessageLink(std::span<const LinkShare> links, LinkId home) {
  if (home < links.size() && IsFull(links[home])) return home;
  const auto rank = [&](size_t link) { return links[link].slow ? 0 : 1 + links[link].weight_permille; };
  LinkId best = home;
  int best_rank = -1;
  for (size_t i = 0; i < links.size(); ++i) {
    const size_t link = (home + i) % links.size();
    if (!links[link].usable || rank(link) <= best_rank) continue;
    best = static_cast<LinkId>(link);
    best_rank = rank(link);
  }
  return best;
}

namespace {

// Of the usable links.
struct Best {
  explicit Best(std::span<const LinkShare> links) {
    for (const LinkShare& link : links)
      if (link.usable) weight_permille = std::max(weight_permille, link.weight_permille), rate = std::max(rate, link.rate_bytes_per_s);
    for (const LinkShare& link : links)
      if (link.usable && link.weight_permille == weight_permille) carried_bytes = std::max(carried_bytes, link.carried_bytes);
  }
  // Bytes per second; of a link of which nothing is known, too.
  double RateOf(const LinkShare& link) const { return link.rate_bytes_per_s > 0 ? link.rate_bytes_per_s : rate; }
  bool WeightAllows(const LinkShare& link) const {
    if (link.weight_permille == weight_permille) return true;
    return link.weight_permille > 0 && link.carried_bytes * weight_permille <= carried_bytes * link.weight_permille;
  }

  uint16_t weight_permille = 0;
  uint64_t carried_bytes = 0;  // by the busiest of the heaviest
  double rate = 0;
};

Nanos TimeFor(double bytes, double bytes_per_s) {
  return bytes_per_s > 0 ? static_cast<Nanos>(bytes / bytes_per_s * static_cast<double>(kNanosPerSecond)) : 0;
}

Nanos FinishAt(const LinkShare& link, double rate, uint64_t chunk_bytes, Nanos now) {
  return std::max(link.free_at, now) + TimeFor(static_cast<double>(chunk_bytes), rate);
}

}  // namespace

Nanos FinishAt(std::span<const LinkShare> links, LinkId link, uint64_t chunk_bytes, Nanos now) {
  return FinishAt(links[link], Best(links).RateOf(links[link]), chunk_bytes, now);
}

std::optional<Nanos> LeavesUntil(std::span<const LinkShare> links, LinkId link, uint64_t chunk_bytes, uint64_t ready_bytes, Nanos now) {
  const Best best(links);
  if (!best.WeightAllows(links[link])) return std::nullopt;
  Nanos first = std::numeric_limits<Nanos>::max();
  double waiting_bytes = static_cast<double>(ready_bytes), rates = 0;
  for (size_t i = 0; i < links.size(); ++i) {
    const LinkShare& other = links[i];
    if (i == link || !other.usable || !best.WeightAllows(other)) continue;
    const double rate = best.RateOf(other);
    first = std::min(first, FinishAt(other, rate, chunk_bytes, now));
    waiting_bytes += rate * static_cast<double>(std::max<Nanos>(other.free_at - now, 0)) / static_cast<double>(kNanosPerSecond);
    rates += rate;
  }
  // There is no other link, or nothing is known of any.
  if (rates == 0) return now;
  const Nanos others = std::max(first, now + TimeFor(waiting_bytes, rates));
  return FinishAt(links[link], best.RateOf(links[link]), chunk_bytes, now) <= others ? now : others;
}

// It had room, so that it held less than a link may: that ends the error of a rate which is too low.
void Pulled(std::span<LinkShare> links, LinkId link, uint64_t chunk_bytes, Nanos now) {
  LinkShare& own = links[link];
  own.carried_bytes += chunk_bytes;
  own.free_at = std::min(own.free_at, now + TimeFor(tuning::kQueuedSeconds, 1));
  own.free_at = FinishAt(links, link, chunk_bytes, now);
}

}  // namespace r2cc::net
