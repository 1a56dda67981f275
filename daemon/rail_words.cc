// What a rail watch says of its pairs, and what it makes of all nodes' words about theirs.
#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "base/core/hash.h"
#include "daemon/rail_watch.h"

namespace r2cc::daemon {
namespace {

// Nodes that lend their eyes when a pair of others is silent.
constexpr int kVolunteersMax = 3;
// A port that its node speaks of so many pairs of is seen well enough without.
constexpr int kEyesEnough = 4;
// Silent pairs of others that a node lends its eyes for.
constexpr size_t kAccusedMax = 64;
// Silent pairs that are looked at for it, as each look goes over all nodes.
constexpr int kVolunteeringMax = 256;

}  // namespace

void RailWatch::Fill(health::NodeState* own) const {
  own->probe_nonce = prober_.nonce();
  for (health::NicStatus& status : own->nics) {
    const auto nic = nics_.find(status.identity.name);
    const bool open = nic != nics_.end() && nic->second.socket != nullptr;
    status.probe_port = open ? nic->second.socket->port() : uint16_t{0};
    status.port_dead = nic != nics_.end() && nic->second.port_dead;
  }
  if (filled_.prober_revision != prober_.revision() || (filled_.silent && filled_.view_revision != view_->revision())) {
    const std::vector<health::RailPairStatus> pairs = prober_.Pairs();
    const bool silent = std::any_of(pairs.begin(), pairs.end(), [](const auto& pair) { return pair.word == health::PairWord::kSilent; });
    filled_ = {prober_.revision(), view_->revision(), silent, PairReports(pairs)};
  }
  own->pairs = filled_.pairs;
}

health::PairWord RailWatch::WordNow(const health::RailPairStatus& pair) const {
  const Nic& nic = nics_.at(pair.key.own.nic);
  const bool old = nic.silent && pair.answered_sent < nic.silent_since;
  return old && pair.fresh_word == health::PairWord::kAnswering ? health::PairWord::kUnknown : pair.fresh_word;
}

health::PairReports RailWatch::PairReports(std::vector<health::RailPairStatus> pairs) const {
  health::PairReports reports;
  std::stable_partition(pairs.begin(), pairs.end(), [](const auto& pair) { return pair.word == health::PairWord::kSilent; });
  for (const health::RailPairStatus& pair : pairs) {
    if (pair.word == health::PairWord::kUnknown || WordNow(pair) == health::PairWord::kUnknown ||
        (pair.word == health::PairWord::kAnswering && !pair.active))
      continue;
    // A port that its own daemon has found to be dead explains what is silent around it: each such word would go to all nodes and tell
    // nothing.
    if (nics_.at(pair.key.own.nic).port_dead || ExplainsSilence(pair.key.peer)) continue;
    if (reports.size() >= health::kPairReportsMax) break;
    reports.push_back({pair.key.own.nic, pair.key.peer, pair.word == health::PairWord::kSilent,
                       nics_.at(pair.key.own.nic).paths_told.contains(pair.key.peer)});
  }
  return reports;
}

bool RailWatch::ExplainsSilence(const health::NicStatus& nic) { return !nic.link_up || nic.drill_failed || nic.port_dead; }

bool RailWatch::ExplainsSilence(const health::NicKey& nic) const {
  const health::NicStatus* status = view_->Find(nic);
  return status != nullptr && ExplainsSilence(*status);
}

// Every daemon makes its own, so it holds what the verdict needs: all words about the nodes that silence joins to its own, or to a node
// that it joins to it. A port is judged by those that are silent to it, and these by those that are silent to them.
health::ProbeMatrix RailWatch::Matrix(const std::vector<health::RailPairStatus>& pairs) const {
  using Ends = std::pair<std::string_view, std::string_view>;
  std::vector<Ends> silent;
  for (const auto& [name, entry] : view_->nodes()) {
    if (name == node_ || !entry.reachable || entry.state.pairs.silent() == 0) continue;
    const health::PairReports& reports = entry.state.pairs;
    for (auto report = reports.begin(); report != reports.end(); ++report)
      if (report.silent()) silent.emplace_back(name, report.peer_node());
  }
  std::set<Ends> known;  // this node's NIC, the other end
  for (const health::RailPairStatus& pair : pairs) {
    if (pair.word == health::PairWord::kSilent) silent.emplace_back(node_, pair.key.peer.node);
    if (pair.state != health::PairState::kUnknown) known.emplace(pair.key.own.nic, pair.key.peer.node);
  }
  absl::flat_hash_set<std::string_view> concerned = {std::string_view(node_)};
  for (int step = 0; step < 2; ++step) {
    const absl::flat_hash_set<std::string_view> before = concerned;
    for (const auto& [a, b] : silent) {
      if (before.contains(a)) concerned.insert(b);
      if (before.contains(b)) concerned.insert(a);
    }
  }

  health::ProbeMatrix matrix;
  for (const auto& [nic, other] : cables_) matrix.AddCable({node_, nic}, other);
  for (const auto& [name, entry] : view_->nodes()) {
    for (const health::NicStatus& nic : entry.state.nics) {
      if (!nic.link_up || nic.drill_failed)
        matrix.AddDown({name, nic.identity.name});
      else if (name != node_ && nic.port_dead)
        matrix.AddDead({name, nic.identity.name});
    }
    if (name == node_ || !entry.reachable) continue;
    const bool all = concerned.contains(name);
    const health::PairReports& reports = entry.state.pairs;
    for (auto report = reports.begin(); report != reports.end(); ++report) {
      if (!all && !concerned.contains(report.peer_node())) continue;
      const health::PairReport pair = *report;
      // Of a pair of its own this node knows best whether it answers; the other end may not have asked since.
      if (!pair.silent && pair.peer.node == node_ && known.contains({pair.peer.nic, name})) continue;
      matrix.Add({name, pair.nic}, pair.peer, pair.silent ? health::PairWord::kSilent : health::PairWord::kAnswering);
    }
  }
  for (const health::RailPairStatus& pair : pairs) matrix.Add(pair.key.own, pair.key.peer, WordNow(pair));
  return matrix;
}

// Of all the nodes that see both ends, those with the lowest hash of it: the same few by everybody's reckoning, without asking.
bool RailWatch::Volunteers(const health::NicKey& a, const health::NicKey& b) const {
  const auto sees = [&](const health::NodeEntry& entry) {
    const health::NicStatus* nic = entry.state.Find(a.nic);
    return entry.reachable && entry.state.probe_nonce != 0 && (nic == nullptr || !IsGivenUp(*nic));
  };
  if (const health::NodeEntry* own = view_->Find(node_); own != nullptr && !sees(*own)) return false;
  const auto rank = [&](const std::string& node) {
    return Fnv1a64(node + " " + std::min(a, b).ToString() + " " + std::max(a, b).ToString());
  };
  const uint64_t own = rank(node_);
  int before = 0;
  for (const auto& [name, entry] : view_->nodes())
    if (name != node_ && name != a.node && name != b.node && rank(name) < own && sees(entry) && ++before >= kVolunteersMax) return false;
  return true;
}

bool RailWatch::IsGivenUp(const health::NicStatus& nic) {
  return !nic.link_up || nic.drill_failed || nic.state == health::NicState::kFailed;
}

bool RailWatch::IsWellSeen(const health::NicKey& nic) const {
  const health::NodeEntry* entry = view_->Find(nic.node);
  if (entry == nullptr) return false;
  int eyes = 0;
  for (const health::PairReport& pair : entry->state.pairs)
    if (pair.nic == nic.nic && ++eyes >= kEyesEnough) return true;
  return false;
}

void RailWatch::UpdateAccused() {
  std::set<health::NicKey> accused;
  accused_here_ = false;
  int looked_at = 0;
  for (const auto& [name, entry] : view_->nodes()) {
    if (entry.state.pairs.silent() == 0 || name == node_) continue;
    for (const health::PairReport& pair : entry.state.pairs) {
      if (!pair.silent) continue;
      accused_here_ |= pair.peer.node == node_;
      if (pair.peer.node == node_ || accused.size() >= kAccusedMax || ++looked_at > kVolunteeringMax) continue;
      const health::NicKey reporter = {name, pair.nic};
      const bool explained = ExplainsSilence(reporter) || ExplainsSilence(pair.peer) || (IsWellSeen(reporter) && IsWellSeen(pair.peer));
      if (explained || !Volunteers(reporter, pair.peer)) continue;
      accused.insert(reporter);
      accused.insert(pair.peer);
    }
  }
  if (std::exchange(accused_, std::move(accused)) != accused_) targets_changed_ = true;
}

void RailWatch::UpdateGivenUp() {
  const uint64_t since = std::exchange(seen_changes_, view_->changes());
  for (const auto& [name, entry] : view_->nodes()) {
    if (entry.changes <= since || name == node_) continue;
    const health::NodeState& state = entry.state;
    for (const health::NicStatus& nic : state.nics)
      if (IsGivenUp(nic)) given_up_.insert({name, nic.identity.name});
    for (auto nic = given_up_.lower_bound({name, ""}); nic != given_up_.end() && nic->node == name;) {
      const health::NicStatus* const status = state.Find(nic->nic);
      if (status != nullptr && IsGivenUp(*status)) {
        ++nic;
        continue;
      }
      prober_.Renew(*nic, seams_.executor->Now());
      nic = given_up_.erase(nic);
    }
  }
}

health::Fault RailWatch::Verdict(const std::string& nic) const { return health::Localise(Matrix(prober_.Pairs()), {node_, nic}); }

void RailWatch::Tell(const Nic& nic, health::EvidenceKind kind, const health::NicKey& peer, const std::string& detail) {
  health::Evidence evidence;
  evidence.observer = node_;
  evidence.subject = {node_, nic.identity.name};
  evidence.kind = kind;
  evidence.when = seams_.executor->Now();
  evidence.peer = peer;
  evidence.detail = detail;
  outputs_.evidence(evidence);
}

std::vector<health::NicKey> RailWatch::NeverHeard(const std::string& nic, const std::vector<health::RailPairStatus>& pairs) const {
  const Nanos now = seams_.executor->Now();
  for (const health::RailPairStatus& pair : pairs)
    if (pair.state == health::PairState::kUp && pair.key.own.nic == nic) return {};
  std::set<std::string> awake;
  for (const health::RailPairStatus& pair : pairs)
    if (pair.state == health::PairState::kUp) awake.insert(pair.key.peer.node);
  std::vector<health::NicKey> strange;
  for (const health::RailPairStatus& pair : pairs)
    if (pair.key.own.nic == nic && pair.state == health::PairState::kUnknown && pair.measures.sent >= kFirstAnswerProbes &&
        now - pair.since >= kFirstAnswerWait && awake.contains(pair.key.peer.node))
      strange.push_back(pair.key.peer);
  return strange;
}

const health::NicKey* RailWatch::CableTo(const std::string& nic) const {
  const auto found = cables_.find(nic);
  return found == cables_.end() ? nullptr : &found->second;
}

}  // namespace r2cc::daemon
