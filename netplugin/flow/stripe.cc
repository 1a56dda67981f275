#include "netplugin/flow/stripe.h"

#include <algorithm>

#include "netplugin/flow/tuning.h"
#include "plan/model.h"

namespace r2cc::net {

bool Spread(std::span<const LinkShare> links) {
  for (const LinkShare& link : links)
    if (link.home && (link.dealt || !link.usable || link.weight_permille != links.front().weight_permille)) return true;
  return false;
}

bool Carries(std::span<const LinkShare> links, StripeMode mode, LinkId home, LinkId link) {
  if (mode == StripeMode::kOneRail) return link == home;
  if (mode == StripeMode::kBalance) return link == home || Spread(links);
  for (size_t i = 0; i < links.size(); ++i) {
    const auto candidate = static_cast<LinkId>((home + i) % links.size());
    if (links[candidate].usable && links[candidate].weight_permille > 0) return candidate == link;
  }
  return true;
}

bool IsFull(const LinkShare& link) { return link.usable && link.weight_permille >= plan::kFullWeightPermille; }

namespace {

uint16_t Heaviest(std::span<const LinkShare> links) {
  uint16_t heaviest = 0;
  for (const LinkShare& link : links)
    if (link.usable) heaviest = std::max(heaviest, link.weight_permille);
  return heaviest;
}

}  // namespace

uint64_t BusiestBytes(std::span<const LinkShare> links) {
  const uint16_t heaviest = Heaviest(links);
  uint64_t busiest_bytes = 0;
  for (const LinkShare& link : links)
    if (link.usable && link.weight_permille == heaviest) busiest_bytes = std::max(busiest_bytes, link.carried_bytes);
  return busiest_bytes;
}

size_t LinksAlike(std::span<const LinkShare> links) {
  const uint16_t heaviest = Heaviest(links);
  size_t alike = 0;
  for (const LinkShare& link : links) {
    if (!link.usable || link.weight_permille == 0) continue;
    if (link.weight_permille != heaviest) return 0;
    ++alike;
  }
  return alike;
}

LinkId SmallMessageLink(std::span<const LinkShare> links, LinkId home) {
  if (home < links.size() && IsFull(links[home])) return home;
  const uint16_t heaviest = Heaviest(links);
  for (size_t i = 0; i < links.size(); ++i) {
    const auto candidate = static_cast<LinkId>((home + i) % links.size());
    if (links[candidate].usable && links[candidate].weight_permille == heaviest) return candidate;
  }
  return home;
}

bool MayPull(std::span<const LinkShare> links, StripeMode mode, LinkId link) {
  if (link >= links.size() || !links[link].usable) return false;
  if (mode != StripeMode::kBalance || IsFull(links[link])) return true;
  const uint16_t heaviest = Heaviest(links);
  if (heaviest == 0) return true;
  const LinkShare& own = links[link];
  if (own.weight_permille == heaviest) return true;
  if (own.weight_permille == 0) return false;
  return own.carried_bytes * heaviest <= BusiestBytes(links) * own.weight_permille;
}

bool CapBinds(std::span<const LinkShare> links, LinkId link) {
  const uint16_t heaviest = Heaviest(links);
  if (link >= links.size() || !links[link].usable || links[link].weight_permille >= heaviest || !Spread(links)) return false;
  const auto carried_bytes = static_cast<double>(links[link].carried_bytes), busiest_bytes = static_cast<double>(BusiestBytes(links));
  return carried_bytes > 0 && carried_bytes * heaviest >= tuning::kCapBindsAbove * busiest_bytes * links[link].weight_permille;
}

}  // namespace r2cc::net
