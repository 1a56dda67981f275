#include "health/probe/counter_rules.h"

#include <algorithm>
#include <iterator>

namespace r2cc::health {
namespace {

constexpr Nanos kSecond = kNanosPerSecond;
constexpr Nanos kMinute = 60 * kNanosPerSecond;

constexpr CounterRule kRules[] = {
    // Damaged frames, Ethernet. A cable within its specification (a bit in 10^12) damages less than one a second at 400 Gbit/s.
    {"rx_crc_errors", 10, kSecond, 0},
    {"rx_frame_errors", 10, kSecond, 0},
    {"rx_length_errors", 10, kSecond, 0},
    {"rx_errors", 10, kSecond, 0},
    {"tx_carrier_errors", 10, kSecond, 0},
    {"tx_errors", 10, kSecond, 0},
    // The same on InfiniBand.
    {"symbol_error", 10, kSecond, 0, UINT16_MAX},
    {"port_rcv_errors", 10, kSecond, 0, UINT16_MAX},
    // The link trained again, or fell: each costs milliseconds to seconds. One is an event, which the link itself reports; more are a
    // fault.
    {"link_error_recovery", 3, kMinute, 0, UINT8_MAX},
    {"link_downed", 3, kMinute, 0, UINT8_MAX},
    {"local_link_integrity_errors", 3, kMinute, 0, 15},
    // Retransmissions of RDMA: lost packets, by a bad path or by congestion without flow control. A fault only where they are many and a
    // thousandth of what the port moves.
    {"local_ack_timeout_err", 100, kSecond, 1000},
    {"packet_seq_err", 100, kSecond, 1000},
    {"out_of_sequence", 100, kSecond, 1000},
    {"implied_nak_seq_err", 100, kSecond, 1000},
    {"roce_adp_retrans", 100, kSecond, 1000},
};

// Counters of 32 bits, some of which wrap and some of which stop: a counter at the last value has stopped.
bool IsFull(const CounterRule& rule, uint64_t count) { return count == UINT32_MAX || (rule.full != 0 && count == rule.full); }

const CounterRule* RuleFor(const std::string& counter) {
  const auto* found = std::find_if(std::begin(kRules), std::end(kRules), [&](const CounterRule& rule) { return counter == rule.counter; });
  return found == std::end(kRules) ? nullptr : found;
}

}  // namespace

std::span<const CounterRule> CounterRules() { return kRules; }

uint64_t Growth(uint64_t before, uint64_t after) { return after >= before ? after - before : after; }

CounterWatch::Verdict CounterWatch::Sample(const std::map<std::string, uint64_t>& counters, std::optional<uint64_t> packets, Nanos now) {
  Verdict worst;
  std::string full;
  const Nanos elapsed = when_.has_value() ? now - *when_ : 0;
  // Not known: nothing, so that the number alone decides.
  const uint64_t moved = packets_.has_value() && packets.has_value() ? Growth(*packets_, *packets) : 0;
  for (const auto& [counter, count] : counters) {
    const CounterRule* rule = RuleFor(counter);
    if (rule == nullptr) continue;
    const auto [entry, fresh] = buckets_.try_emplace(counter, Bucket{count, 0});
    if (fresh) continue;
    Bucket& bucket = entry->second;
    const uint64_t growth = Growth(bucket.last, count);
    bucket.last = count;
    if (growth == 0 && IsFull(*rule, count)) {
      full += (full.empty() ? "" : ", ") + counter + " is full at " + std::to_string(count);
      continue;
    }
    const auto limit = static_cast<double>(rule->count_limit);
    const double windows = static_cast<double>(elapsed) / static_cast<double>(rule->window);
    const double drained = std::max(0.0, bucket.level - limit * windows);
    const bool congestion = static_cast<double>(growth) * 1e6 < static_cast<double>(moved) * rule->packets_ppm_min;
    // A sample that is longer than the window counts as if its errors had come evenly.
    const double seen = congestion ? 0 : static_cast<double>(growth) / std::max(1.0, windows);
    const double level = drained + seen;
    // An overflow is not kept: when the errors end the port is trusted again within two windows.
    bucket.level = std::min(level, 2 * limit);
    const auto permille = static_cast<uint64_t>(std::min(level * 1000 / limit, 1e15));
    if (seen == 0 || permille <= worst.permille) continue;
    worst.permille = permille;
    worst.text = std::to_string(static_cast<uint64_t>(std::min(seen >= limit ? seen : level, 1e15))) + " " + counter + " in " +
                 std::to_string(rule->window / kSecond) + " s, the limit is " + std::to_string(rule->count_limit);
  }
  packets_ = packets;
  when_ = now;
  if (!full.empty()) worst.text += (worst.text.empty() ? "" : "; ") + full + " and counts no more: reset it (perfquery -R)";
  return worst;
}

void CounterWatch::Reset() { *this = CounterWatch(); }

}  // namespace r2cc::health
