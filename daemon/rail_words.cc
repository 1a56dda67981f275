// What a rail watch says of its pairs, and what it makes of all nodes' words about theirs.
#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "daemon/rail_watch.h"

namespace r2cc::daemon {

void RailWatch::Fill(health::NodeState* own) const {
  own->probe_nonce = prober_.nonce();
  for (health::NicStatus& status : own->nics) {
    const auto nic = nics_.find(status.identity.name);
    const bool open = nic != nics_.end() && nic->second.socket != nullptr;
    status.probe_port = open ? nic->second.socket->port() : uint16_t{0};
  }
  std::vector<bool> failed;
  for (const health::NicStatus& nic : own->nics) failed.push_back(nic.state == health::NicState::kFailed);
  if (filled_.prober_revision != prober_.revision() || filled_.view_changes != view_->changes() || filled_.failed != failed)
    filled_ = {prober_.revision(), view_->changes(), failed, PairReports(*own)};
  own->pairs = filled_.pairs;
}

std::vector<health::PairReport> RailWatch::PairReports(const health::NodeState& own) const {
  std::vector<health::PairReport> reports;
  std::vector<health::RailPairStatus> pairs = prober_.Pairs();
  std::stable_partition(pairs.begin(), pairs.end(), [](const auto& pair) { return pair.word == health::PairWord::kSilent; });
  for (const health::RailPairStatus& pair : pairs) {
    if (pair.word == health::PairWord::kUnknown || (pair.word == health::PairWord::kAnswering && !pair.active)) continue;
    // A port that its own daemon has given up explains what is silent around it: each such word would go to all nodes and tell nothing.
    const health::NicStatus* nic = own.Find(pair.key.own.nic);
    if ((nic != nullptr && nic->state == health::NicState::kFailed) || IsGivenUp(pair.key.peer)) continue;
    if (reports.size() >= health::kPairReportsMax) break;
    reports.push_back({pair.key.own.nic, pair.key.peer, pair.word == health::PairWord::kSilent,
                       nics_.at(pair.key.own.nic).paths_told.contains(pair.key.peer)});
  }
  return reports;
}

bool RailWatch::IsGivenUp(const health::NicKey& nic) const {
  const health::NicStatus* status = view_->Find(nic);
  return status != nullptr && IsGivenUp(*status);
}

// Every daemon makes its own, so it holds what the verdict needs: all words about the nodes that silence joins to `about`, or to a node
// that it joins to it. A port is judged by those that are silent to it, and these by those that are silent to them.
health::ProbeMatrix RailWatch::Matrix(const std::string& about, const std::vector<health::RailPairStatus>& pairs) const {
  using Ends = std::pair<std::string_view, std::string_view>;
  std::vector<Ends> silent;
  for (const auto& [name, entry] : view_->nodes()) {
    if (name == node_ || !entry.reachable) continue;
    for (const health::PairReport& pair : entry.state.pairs)
      if (pair.silent) silent.emplace_back(name, pair.peer.node);
  }
  std::set<Ends> known;  // this node's NIC, the other end
  for (const health::RailPairStatus& pair : pairs) {
    if (pair.word == health::PairWord::kSilent) silent.emplace_back(node_, pair.key.peer.node);
    if (pair.state != health::PairState::kUnknown) known.emplace(pair.key.own.nic, pair.key.peer.node);
  }
  std::set<std::string_view> concerned = {about};
  for (int step = 0; step < 2; ++step) {
    const std::set<std::string_view> before = concerned;
    for (const auto& [a, b] : silent) {
      if (before.contains(a)) concerned.insert(b);
      if (before.contains(b)) concerned.insert(a);
    }
  }

  health::ProbeMatrix matrix;
  for (const auto& [nic, other] : cables_) matrix.AddCable({node_, nic}, other);
  for (const auto& [name, entry] : view_->nodes()) {
    for (const health::NicStatus& nic : entry.state.nics) {
      const health::NicKey key = {name, nic.identity.name};
      const bool given_up = name != about && nic.state == health::NicState::kFailed;
      if (!nic.link_up || nic.drill_failed || given_up) matrix.AddDown(key);
    }
    if (name == node_ || !entry.reachable) continue;
    const bool all = concerned.contains(name);
    for (const health::PairReport& pair : entry.state.pairs) {
      if (!all && !concerned.contains(pair.peer.node)) continue;
      // Of a pair of its own this node knows best whether it answers; the other end may not have asked since.
      if (!pair.silent && pair.peer.node == node_ && known.contains({pair.peer.nic, name})) continue;
      matrix.Add({name, pair.nic}, pair.peer, pair.silent ? health::PairWord::kSilent : health::PairWord::kAnswering);
    }
  }
  for (const health::RailPairStatus& pair : pairs) matrix.Add(pair.key.own, pair.key.peer, pair.fresh_word);
  return matrix;
}

health::Fault RailWatch::Verdict(const health::NicKey& nic) const { return health::Localise(Matrix(nic.node, prober_.Pairs()), nic); }

}  // namespace r2cc::daemon
