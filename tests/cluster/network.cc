#include "tests/cluster/network.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "health/probe/rail_wire.h"
#include "tests/cluster/bug.h"

namespace r2cc::cluster {
namespace {

// The port with an address of RailAddress(); of another one a port that nobody has.
sim::Port PortOf(const std::string& address) {
  int rail = 0;
  int high = 0;
  int low = 0;
  const bool ours = std::sscanf(address.c_str(), "10.%d.%d.%d", &rail, &high, &low) == 3;
  return ours ? sim::Port{high * 256 + low, rail} : sim::Port{-1, -1};
}

}  // namespace

std::string Network::RailAddress(int node, int rail) {
  return "10." + std::to_string(rail) + "." + std::to_string(node / 256) + "." + std::to_string(node % 256);
}

void Network::SetPortDead(int node, int rail, bool dead) {
  std::vector<bool>::reference known = ports_dead_[static_cast<size_t>(node * rails_ + rail)];
  if (known == dead) return;
  known = dead;
  dead ? ports_->BlockPort({node, rail}) : ports_->UnblockPort({node, rail});
}

void Network::SetPaused(int node, bool paused) {
  if (paused) return void(held_[node]);
  auto held = held_.extract(node);
  if (held.empty()) return;
  for (const Task& arrive : held.mapped()) arrive();
}

std::optional<Nanos> Network::Rail(const health::DatagramAddress& from, const health::DatagramAddress& to) {
  counts_.Add(Kind::kProbe, sizeof(health::RailProbeBytes) + kDatagramOverheadBytes);
  const sim::Port a = PortOf(from.address);
  const sim::Port b = PortOf(to.address);
  if (a.host < 0 || b.host < 0 || IsOff(a.host) || IsOff(b.host)) return std::nullopt;
  if (a.rail != b.rail && !options_.full_fabric) return std::nullopt;
  if (!ports_->Passes(a, b) && bug == Bug::kSilenceForEver) given_up_.insert(a);
  if (!ports_->Passes(a, b) || given_up_.contains(a)) return std::nullopt;
  if (static_cast<double>(Random() >> 11) * 0x1p-53 < options_.probe_loss) return std::nullopt;
  const Nanos held = std::max<Nanos>(ports_->HeldUntil(a, b) - timeline_->now(), 0);
  return ports_->Delay(a, b) + held + timeline_->random().Between(0, options_.probe_jitter);
}

size_t Network::Limit(const health::DatagramAddress& from, const health::DatagramAddress& to) const {
  return ports_->LosesLarge(PortOf(from.address), PortOf(to.address)) ? sim::Network::kSmallPacketBytes : SIZE_MAX;
}

bool Network::Reaches(int from, int to) const {
  if (IsOff(from) || IsOff(to) || Side(from) != Side(to)) return false;
  return from == kStoreNode || to == kStoreNode || from == to || ports_->Passes({from, sim::kOobRail}, {to, sim::kOobRail});
}

void Network::Send(Kind kind, size_t bytes, int from, int to, Lane* lane, Task arrive) {
  counts_.Add(kind, StreamBytes(bytes));
  if (!Reaches(from, to)) return;
  lane->last = std::max(lane->last, timeline_->now() + ManagementLatency());
  timeline_->At(lane->last, [this, from, to, arrive = std::move(arrive)] {
    if (!Reaches(from, to)) return;
    const auto held = held_.find(to);
    held == held_.end() ? arrive() : held->second.push_back(arrive);
  });
}

}  // namespace r2cc::cluster
