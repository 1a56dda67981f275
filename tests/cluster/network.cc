#include "tests/cluster/network.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "health/probe/rail_wire.h"

namespace r2cc::cluster {
namespace {

struct Place {
  int node = 0;
  int rail = 0;
};

Place PlaceOf(const std::string& address) {
  int rail = 0;
  int high = 0;
  int low = 0;
  const bool ours = std::sscanf(address.c_str(), "10.%d.%d.%d", &rail, &high, &low) == 3;
  return ours ? Place{high * 256 + low, rail} : Place{-1, -1};
}

}  // namespace

std::string Network::RailAddress(int node, int rail) {
  return "10." + std::to_string(rail) + "." + std::to_string(node / 256) + "." + std::to_string(node % 256);
}

std::optional<Nanos> Network::Rail(const health::DatagramAddress& from, const health::DatagramAddress& to) {
  counts_.Add(Kind::kProbe, sizeof(health::RailProbeBytes) + kDatagramOverheadBytes);
  const Place a = PlaceOf(from.address);
  const Place b = PlaceOf(to.address);
  // Rail k reaches rail k only.
  if (a.node < 0 || b.node < 0 || a.rail != b.rail || IsOff(a.node) || IsOff(b.node)) return std::nullopt;
  if (IsPortDead(a.node, a.rail) || IsPortDead(b.node, b.rail)) return std::nullopt;
  if (static_cast<double>(random_() >> 11) * 0x1p-53 < options_.probe_loss) return std::nullopt;
  return Draw(options_.rail);
}

void Network::Send(Kind kind, size_t bytes, int from, int to, Lane* lane, Task arrive) {
  counts_.Add(kind, StreamBytes(bytes));
  if (!Reaches(from, to)) return;
  lane->last = std::max(lane->last, queue_->Now() + ManagementLatency());
  queue_->RunAfter(lane->last - queue_->Now(), [this, from, to, arrive = std::move(arrive)] {
    if (Reaches(from, to)) arrive();
  });
}

}  // namespace r2cc::cluster
