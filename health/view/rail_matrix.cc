#include "health/view/rail_matrix.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "base/core/hash.h"

namespace r2cc::health {
namespace {

// Nodes that look at a silent pair of others.
constexpr int kVolunteersMax = 3;
// A port whose node reports this many of its pairs is seen well enough without.
constexpr int kReportsEnough = 4;
// Ends of silent pairs of others that one node looks at.
constexpr size_t kSuspectedMax = 64;
// Silent pairs for which a node asks whether it volunteers, as each question goes over all nodes.
constexpr int kVolunteeringMax = 256;

using Names = std::pair<std::string_view, std::string_view>;

// A dead port that its own daemon has reported is not reported by others any more. One that is failed because nobody answers it is: its
// fault may be elsewhere.
bool ExplainsSilence(const NicStatus& nic) { return !nic.link_up || nic.drill_failed || nic.port_dead; }

const RailFinding& VerdictOn(const std::string& nic, const RailFindings& verdicts) {
  static const RailFinding sound;
  const auto found = verdicts.find(nic);
  return found == verdicts.end() ? sound : found->second;
}

// The nodes whose reports a verdict on `node` needs: those that silence joins to it, and those that it joins to these. A port is judged
// by those that are silent to it, and these by those that are silent to them.
absl::flat_hash_set<std::string_view> JoinedBySilence(std::string_view node, const std::vector<Names>& silent) {
  absl::flat_hash_set<std::string_view> joined = {node};
  for (int step = 0; step < 2; ++step) {
    const absl::flat_hash_set<std::string_view> before = joined;
    for (const auto& [a, b] : silent) {
      if (before.contains(a)) joined.insert(b);
      if (before.contains(b)) joined.insert(a);
    }
  }
  return joined;
}

}  // namespace

bool IsGivenUp(const NicStatus& nic) { return !nic.link_up || nic.drill_failed || nic.state == NicState::kFailed; }

PairVerdict VerdictNow(const RailPairStatus& pair, const RailFindings& verdicts) {
  const RailFinding& verdict = VerdictOn(pair.key.own.nic, verdicts);
  const bool old = verdict.silent && pair.answered_sent < verdict.silent_since;
  return old && pair.fresh_verdict == PairVerdict::kAnswering ? PairVerdict::kUnknown : pair.fresh_verdict;
}

std::vector<NicKey> NeverAnswered(const std::string& nic, const std::vector<RailPairStatus>& pairs, Nanos now) {
  std::set<std::string_view> awake;
  for (const RailPairStatus& pair : pairs) {
    if (pair.state != PairState::kUp) continue;
    if (pair.key.own.nic == nic) return {};
    awake.insert(pair.key.peer.node);
  }
  std::vector<NicKey> strange;
  for (const RailPairStatus& pair : pairs)
    if (pair.key.own.nic == nic && pair.state == PairState::kUnknown && pair.measures.sent >= kFirstAnswerProbes &&
        now - pair.since >= kFirstAnswerWait && awake.contains(pair.key.peer.node))
      strange.push_back(pair.key.peer);
  return strange;
}

RailMatrix::RailMatrix(std::string node, std::map<std::string, NicKey> cables, const ClusterView* view)
    : node_(std::move(node)), cables_(std::move(cables)), view_(view) {}

ProbeMatrix RailMatrix::Matrix(const std::vector<RailPairStatus>& pairs, const RailFindings& verdicts) const {
  return MatrixOf(Question::kAnswers, pairs, verdicts);
}

ProbeMatrix RailMatrix::LargeMatrix(const std::vector<RailPairStatus>& pairs) const { return MatrixOf(Question::kLarge, pairs, {}); }

ProbeMatrix RailMatrix::MatrixOf(Question question, const std::vector<RailPairStatus>& pairs, const RailFindings& verdicts) const {
  const bool large = question == Question::kLarge;
  std::vector<Names> silent;
  for (const auto& [name, entry] : view_->nodes()) {
    const PairReports& reports = entry.state.pairs;
    if (name == node_ || !entry.reachable || (large ? reports.large_lost() : reports.silent()) == 0) continue;
    for (auto report = reports.begin(); report != reports.end(); ++report)
      if (large ? report.large_lost() : report.silent()) silent.emplace_back(name, report.peer_node());
  }
  std::set<Names> known;  // this node's NIC, the other end's node
  for (const RailPairStatus& pair : pairs) {
    const PairVerdict verdict = large ? pair.large : pair.verdict;
    if (verdict == PairVerdict::kSilent) silent.emplace_back(node_, pair.key.peer.node);
    if (large ? verdict != PairVerdict::kUnknown : pair.state != PairState::kUnknown) known.emplace(pair.key.own.nic, pair.key.peer.node);
  }
  const absl::flat_hash_set<std::string_view> concerned = JoinedBySilence(node_, silent);

  ProbeMatrix matrix;
  for (const auto& [nic, other] : cables_) matrix.AddCable({node_, nic}, other);
  for (const auto& [name, entry] : view_->nodes()) {
    for (const NicStatus& nic : entry.state.nics) {
      if (!nic.link_up || nic.drill_failed)
        matrix.AddDown({name, nic.identity.name});
      else if (name != node_ && nic.port_dead)
        matrix.AddDead({name, nic.identity.name});
    }
    if (name == node_ || !entry.reachable) continue;
    const bool all = concerned.contains(name);
    const PairReports& reports = entry.state.pairs;
    for (auto report = reports.begin(); report != reports.end(); ++report) {
      if (!all && !concerned.contains(report.peer_node())) continue;
      const PairReport pair = *report;
      // This node knows best whether a pair of its own answers; the other end may not have asked since.
      const PairVerdict small = pair.silent ? PairVerdict::kSilent : PairVerdict::kAnswering;
      const PairVerdict verdict = large ? pair.large : small;
      if (verdict == PairVerdict::kAnswering && pair.peer.node == node_ && known.contains({pair.peer.nic, name})) continue;
      matrix.Add({name, pair.nic}, pair.peer, verdict);
    }
  }
  for (const RailPairStatus& pair : pairs) matrix.Add(pair.key.own, pair.key.peer, large ? pair.large : VerdictNow(pair, verdicts));
  return matrix;
}

PairReports RailMatrix::Reports(std::vector<RailPairStatus> pairs, const RailFindings& verdicts) const {
  PairReports reports;
  const auto lost = [](const RailPairStatus& pair) { return pair.large == PairVerdict::kSilent; };
  std::stable_partition(pairs.begin(), pairs.end(), [&](const auto& pair) { return pair.verdict == PairVerdict::kSilent || lost(pair); });
  for (const RailPairStatus& pair : pairs) {
    if (pair.verdict == PairVerdict::kUnknown || VerdictNow(pair, verdicts) == PairVerdict::kUnknown ||
        (pair.verdict == PairVerdict::kAnswering && !pair.active && !lost(pair)))
      continue;
    // Each report goes to all nodes. If a dead port is known, it would be no news.
    const RailFinding& own = VerdictOn(pair.key.own.nic, verdicts);
    if (own.port_dead || ExplainsSilence(pair.key.peer)) continue;
    if (reports.size() >= kPairReportsMax) break;
    const bool broken = own.broken_paths.contains(pair.key.peer) || own.large_lost.contains(pair.key.peer);
    reports.push_back({pair.key.own.nic, pair.key.peer, pair.verdict == PairVerdict::kSilent, broken, pair.large});
  }
  return reports;
}

bool RailMatrix::ExplainsSilence(const NicKey& nic) const {
  const NicStatus* status = view_->Find(nic);
  return status != nullptr && health::ExplainsSilence(*status);
}

// The volunteers are those with the lowest hash among the nodes that see both ends.
bool RailMatrix::Volunteers(const NicKey& a, const NicKey& b) const {
  const auto sees = [&](const NodeEntry& entry) {
    const NicStatus* nic = entry.state.Find(a.nic);
    return entry.reachable && entry.state.probe_nonce != 0 && (nic == nullptr || !IsGivenUp(*nic));
  };
  if (const NodeEntry* own = view_->Find(node_); own != nullptr && !sees(*own)) return false;
  const auto rank = [&](const std::string& node) {
    return Fnv1a64(node + " " + std::min(a, b).ToString() + " " + std::max(a, b).ToString());
  };
  const uint64_t own = rank(node_);
  int before = 0;
  for (const auto& [name, entry] : view_->nodes())
    if (name != node_ && name != a.node && name != b.node && rank(name) < own && sees(entry) && ++before >= kVolunteersMax) return false;
  return true;
}

bool RailMatrix::IsWellSeen(const NicKey& nic) const {
  const NodeEntry* entry = view_->Find(nic.node);
  if (entry == nullptr) return false;
  int reports = 0;
  for (const PairReport& pair : entry->state.pairs)
    if (pair.nic == nic.nic && ++reports >= kReportsEnough) return true;
  return false;
}

RailMatrix::Suspected RailMatrix::FindSuspected() const {
  Suspected suspected;
  int looked_at = 0;
  for (const auto& [name, entry] : view_->nodes()) {
    if ((entry.state.pairs.silent() == 0 && entry.state.pairs.large_lost() == 0) || name == node_) continue;
    for (const PairReport& pair : entry.state.pairs) {
      if (!pair.silent && pair.large != PairVerdict::kSilent) continue;
      suspected.here |= pair.peer.node == node_;
      if (pair.peer.node == node_ || suspected.ports.size() >= kSuspectedMax || ++looked_at > kVolunteeringMax) continue;
      const NicKey reporter = {name, pair.nic};
      const bool explained = ExplainsSilence(reporter) || ExplainsSilence(pair.peer) || (IsWellSeen(reporter) && IsWellSeen(pair.peer));
      if (explained || !Volunteers(reporter, pair.peer)) continue;
      suspected.ports.insert(reporter);
      suspected.ports.insert(pair.peer);
    }
  }
  return suspected;
}

}  // namespace r2cc::health
