#include "health/view/node_state.h"

#include <algorithm>
#include <set>
#include <utility>

namespace r2cc::health {

const NicStatus* NodeState::Find(const std::string& nic) const {
  for (const NicStatus& status : nics)
    if (status.identity.name == nic) return &status;
  return nullptr;
}

const std::string* NodeState::RdmaEndOf(const std::string& nic, const NicKey& peer) const {
  for (const RdmaEndReport& report : rdma_ends)
    if (report.nic == nic && report.peer == peer) return &report.end;
  return nullptr;
}

bool NodeState::PlansAs(const NodeState& other) const {
  const auto broken = [](const NodeState& state) {
    std::set<std::pair<std::string, NicKey>> paths;
    if (state.pairs.broken() == 0) return paths;
    for (const PairReport& pair : state.pairs)
      if (pair.broken) paths.emplace(pair.nic, pair.peer);
    return paths;
  };
  // Neither since when nor how often.
  const auto same = [](const NicStatus& a, const NicStatus& b) {
    return a.identity == b.identity && a.state == b.state && a.rate_bits_per_s == b.rate_bits_per_s && a.link_up == b.link_up &&
           a.drained == b.drained && a.drained_now == b.drained_now && a.drill_failed == b.drill_failed &&
           a.operator_weight_permille == b.operator_weight_permille && a.drained_jobs == b.drained_jobs &&
           a.share_permille == b.share_permille && a.probe_port == b.probe_port && a.port_dead == b.port_dead;
  };
  return status == other.status && std::equal(nics.begin(), nics.end(), other.nics.begin(), other.nics.end(), same) &&
         broken(*this) == broken(other);
}

bool NodeState::ProbedAs(const NodeState& other) const {
  const auto same = [](const NicStatus& a, const NicStatus& b) {
    return a.identity.name == b.identity.name && a.identity.address == b.identity.address && a.probe_port == b.probe_port &&
           a.probe_packet_max == b.probe_packet_max;
  };
  return probe_nonce == other.probe_nonce && probe_key == other.probe_key &&
         std::equal(nics.begin(), nics.end(), other.nics.begin(), other.nics.end(), same);
}

NodeState WithRails(NodeState own, RailReport rails) {
  own.probe_nonce = rails.probe_nonce;
  own.probe_key = rails.probe_key;
  own.pairs = std::move(rails.pairs);
  for (NicStatus& nic : own.nics) {
    const RailReport::Nic& report = rails.nics[nic.identity.name];
    nic.probe_port = report.probe_port;
    nic.port_dead = report.port_dead;
    nic.probe_trouble = report.trouble;
    nic.probe_packet_max = report.packet_max;
  }
  return own;
}

}  // namespace r2cc::health
