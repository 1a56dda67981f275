#include "netplugin/flow/stripe.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "plan/model.h"

namespace r2cc::net {

bool Spread(std::span<const LinkShare> links) {
  for (const LinkShare& link : links)
    if (link.home && (!link.usable || link.weight_permille != links.front().weight_permille)) return true;
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

uint32_t QueueLimitBytes(double rate_bytes_per_s, bool spread) {
  constexpr double kQueueSeconds = 0.002;
  const uint32_t least = (spread ? 32 : 128) * 1024, most = (spread ? 256 : 1024) * 1024;
  if (rate_bytes_per_s <= 0) return most;
  return static_cast<uint32_t>(std::clamp<double>(rate_bytes_per_s * kQueueSeconds, least, most));
}

uint32_t ChunkBytesOfRate(double rate_bytes_per_s) {
  constexpr double kMostBytes = 512 * 1024;
  constexpr double kChunkSeconds = 0.0002;
  // NCCL's slices, a power of two, are then of equal chunks.
  return std::bit_floor(static_cast<uint32_t>(std::clamp<double>(rate_bytes_per_s * kChunkSeconds, kChunkBytesBase, kMostBytes)));
}

uint32_t DealtChunkBytes(double slowest_bytes_per_s) {
  constexpr double kLeastBytes = 32 * 1024;
  constexpr double kChunkSeconds = 0.002;
  if (slowest_bytes_per_s <= 0) return kChunkBytesBase;
  return std::bit_floor(static_cast<uint32_t>(std::clamp<double>(slowest_bytes_per_s * kChunkSeconds, kLeastBytes, kChunkBytesBase)));
}

uint32_t EvenChunkBytes(uint64_t message_bytes, uint32_t chunk_bytes, size_t links) {
  if (links == 0 || message_bytes <= chunk_bytes) return chunk_bytes;
  const uint64_t round_bytes = uint64_t{chunk_bytes} * links;
  const uint64_t rounds = std::max<uint64_t>(1, (message_bytes + round_bytes / 2) / round_bytes);
  const uint64_t chunks = rounds * links;
  const uint64_t bytes = (message_bytes + chunks - 1) / chunks;
  return static_cast<uint32_t>((bytes + kChunkAlignment - 1) / kChunkAlignment * kChunkAlignment);
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

uint64_t HoldLimitBytes(double rate_bytes_per_s, Nanos round_trip, bool spread) {
  // An eager message fits at least: who posted it need not come back.
  const double least = (spread ? 96 : 256) * 1024;
  static_assert(kEagerBytesMax <= 64 * 1024);
  constexpr double kMostBytes = 4 * 1024 * 1024;
  constexpr double kHoldSeconds = 0.005;
  // Twice the round trip: a rate that this limit itself keeps low must be able to grow.
  const double bytes = rate_bytes_per_s * (kHoldSeconds + 2 * static_cast<double>(round_trip) / static_cast<double>(kNanosPerSecond));
  return bytes <= 0 || bytes > kMostBytes ? 0 : static_cast<uint64_t>(std::max(bytes, least));
}

size_t SocketsInUse(double rate_bytes_per_s, size_t sockets) {
  constexpr double kRateOfSocket = 600e6;
  constexpr size_t kLeast = 2;
  if (sockets <= kLeast) return sockets;
  return static_cast<size_t>(std::clamp<double>(std::ceil(rate_bytes_per_s / kRateOfSocket), kLeast, static_cast<double>(sockets)));
}

LinkId SmallCarrier(std::span<const LinkShare> links, LinkId home) {
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

double CarriedFraction(std::span<const LinkShare> links, LinkId link) {
  if (link >= links.size() || !links[link].usable || !Spread(links)) return 0;
  const uint64_t busiest_bytes = BusiestBytes(links);
  return busiest_bytes == 0 ? 0 : static_cast<double>(links[link].carried_bytes) / static_cast<double>(busiest_bytes);
}

bool CeilingBinds(std::span<const LinkShare> links, LinkId link) {
  constexpr double kAll = 0.9;
  const double carried = CarriedFraction(links, link);
  const uint16_t heaviest = Heaviest(links);
  return carried > 0 && links[link].weight_permille < heaviest && carried * heaviest >= kAll * links[link].weight_permille;
}

}  // namespace r2cc::net
