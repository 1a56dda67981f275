// Rail probers of several nodes in simulated time, joined by a network that a test breaks. One thread.
#ifndef R2CC_HEALTH_PROBE_PROBE_WORLD_H_
#define R2CC_HEALTH_PROBE_PROBE_WORLD_H_

#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "health/probe/rail_prober.h"

namespace r2cc::health {

class ProbeWorld {
 public:
  // The delay of one datagram from one port to another, or nothing if it is lost.
  using Path = std::function<std::optional<Nanos>(const NicKey& from, const NicKey& to)>;

  ProbeWorld(int nodes, int rails, uint64_t seed = 1, const RailProbePolicy& policy = {}) : nodes_(nodes), rails_(rails) {
    for (int node = 0; node < nodes; ++node) {
      Node& one = all_.emplace_back();
      one.keys = std::make_unique<ProbeKeyring>([node, seed] { return SecretOf(node, seed); }, now_);
      for (int peer = 0; peer < nodes; ++peer) {
        std::set<std::string> addresses;
        for (int rail = 0; rail < rails; ++rail) addresses.insert(Port(peer, rail).ToString());
        const ProbeIdentity identity(SecretOf(peer, seed));
        if (peer != node) one.keys->SetPeer(Name(peer), identity.nonce(), identity.public_key(), std::move(addresses));
      }
      one.prober = std::make_unique<RailProber>(Name(node), one.keys.get(), policy);
      one.next_tick = now_ + static_cast<Nanos>(node) * kRailProbeTick / nodes;
      std::vector<RailTarget> targets;
      for (int peer = 0; peer < nodes; ++peer)
        for (int rail = 0; rail < rails && peer != node; ++rail)
          targets.push_back(
              {{Port(node, rail), Port(peer, rail)}, Port(peer, rail).ToString(), 7460, ProbeIdentity(SecretOf(peer, seed)).nonce(), true});
      one.targets = targets;
      one.prober->SetTargets(targets, now_);
    }
  }

  static std::string Name(int node) { return "n" + std::to_string(node); }
  static NicKey Port(int node, int rail) { return {Name(node), "rail" + std::to_string(rail)}; }
  static ProbeSecret SecretOf(int node, uint64_t seed) {
    ProbeSecret secret{};
    const uint64_t bits = seed * 0x9e37'79b9'7f4a'7c15ULL + static_cast<uint64_t>(node) + 1;
    std::memcpy(secret.data() + 1, &bits, sizeof(bits));
    return secret;
  }

  void set_path(Path path) { path_ = std::move(path); }
  // The largest packet, with its headers, that passes from a port to another.
  void set_limit(std::function<size_t(const NicKey& from, const NicKey& to)> limit) { limit_ = std::move(limit); }
  // All NICs have this MTU, and their daemons take so large probes.
  void SetMtu(uint32_t mtu) {
    for (int node = 0; node < nodes_; ++node) {
      for (int rail = 0; rail < rails_; ++rail) all_[node].prober->SetMtu(Port(node, rail).nic, mtu);
      for (RailTarget& target : all_[node].targets) target.packet_max = mtu;
      all_[node].prober->SetTargets(all_[node].targets, now_);
    }
  }
  uint64_t large() const { return large_; }
  // Whether daemons exchange views over another network than the rails, twice a second.
  void set_peer_messages(bool enabled) { peer_messages_ = enabled; }
  // The daemon of `node` neither sends nor reads until it is woken; what arrives waits.
  void Stop(int node) { all_[node].stopped = true; }
  void Wake(int node) {
    all_[node].stopped = false;
    for (const Arrival& arrival : std::exchange(all_[node].waiting, {})) Deliver(node, arrival);
  }

  // Lets `by` pass, or less: until `done`, which is asked after each tick. True if it was done.
  bool Run(Nanos by, const std::function<bool()>& done = nullptr) {
    for (const Nanos end = now_ + by; now_ < end;) {
      Nanos next = end;
      if (!on_way_.empty()) next = std::min(next, on_way_.begin()->first);
      for (const Node& node : all_) next = std::min(next, node.next_tick);
      now_ = next;
      while (!on_way_.empty() && on_way_.begin()->first <= now_) {
        const auto [to, arrival] = on_way_.begin()->second;
        on_way_.erase(on_way_.begin());
        if (all_[to].stopped)
          all_[to].waiting.push_back(arrival);
        else
          Deliver(to, arrival);
      }
      if (peer_messages_ && now_ >= next_signs_) {
        next_signs_ = now_ + kSigns;
        for (const Node& one : all_)
          for (int other = 0; other < nodes_ && !one.stopped; ++other)
            if (!all_[other].stopped) one.prober->NoteAlive(Name(other), now_);
      }
      for (int node = 0; node < nodes_; ++node) {
        if (all_[node].next_tick > now_) continue;
        all_[node].next_tick += kRailProbeTick;
        if (!all_[node].stopped)
          for (const RailPing& ping : all_[node].prober->Tick(now_)) Send(node, ping);
      }
      if (done && done()) return true;
    }
    return false;
  }

  RailProber& prober(int node) { return *all_[node].prober; }
  Nanos now() const { return now_; }
  int nodes() const { return nodes_; }
  int rails() const { return rails_; }

 private:
  struct Arrival {
    NicKey from;
    NicKey at;
    std::string bytes;
    Nanos received;
  };
  struct Node {
    std::unique_ptr<ProbeKeyring> keys;
    std::unique_ptr<RailProber> prober;
    Nanos next_tick = 0;
    bool stopped = false;
    std::vector<Arrival> waiting;
    std::vector<RailTarget> targets;
  };

  static int NodeOf(const NicKey& nic) { return std::stoi(nic.node.substr(1)); }

  void Send(int node, const RailPing& ping) {
    const size_t slash = ping.address.find('/');
    Carry({Name(node), ping.nic}, {ping.address.substr(0, slash), ping.address.substr(slash + 1)}, Padded(ping.bytes, ping.length));
  }
  void Carry(const NicKey& from, const NicKey& to, const std::string& bytes) {
    if (bytes.size() > kRailProbeBytes) ++large_;
    if (limit_ && bytes.size() + RailProbeHeaderBytes("") > limit_(from, to)) return;
    const std::optional<Nanos> delay = path_ ? path_(from, to) : kNanosPerMs / 10;
    if (delay.has_value()) on_way_.emplace(now_ + *delay, std::pair(NodeOf(to), Arrival{from, to, bytes, now_ + *delay}));
  }
  void Deliver(int node, const Arrival& arrival) {
    const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(arrival.bytes.data()), arrival.bytes.size());
    const auto answer = all_[node].prober->Receive(arrival.at.nic, arrival.from.ToString(), bytes, arrival.received);
    if (!answer.has_value()) return;
    Carry(arrival.at, arrival.from, Padded(answer->bytes, answer->length));
    if (answer->after.has_value()) Carry(arrival.at, arrival.from, Padded(*answer->after, 0));
  }

  static constexpr Nanos kSigns = 500 * kNanosPerMs;
  bool peer_messages_ = false;
  Nanos next_signs_ = 0;
  const int nodes_;
  const int rails_;
  Nanos now_ = 100 * kNanosPerSecond;
  Path path_;
  std::function<size_t(const NicKey& from, const NicKey& to)> limit_;
  uint64_t large_ = 0;
  std::vector<Node> all_;
  std::multimap<Nanos, std::pair<int, Arrival>> on_way_;
};

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_PROBE_PROBE_WORLD_H_
