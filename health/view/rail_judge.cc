#include "health/view/rail_judge.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"

namespace r2cc::health {
namespace {

// Null: it is none of this node's.
const RailPairStatus* FindPair(const std::vector<RailPairStatus>& pairs, const PairKey& key) {
  const auto found =
      std::lower_bound(pairs.begin(), pairs.end(), key, [](const auto& pair, const auto& wanted) { return pair.key < wanted; });
  return found == pairs.end() || found->key != key ? nullptr : &*found;
}

}  // namespace

struct RailJudge::Turn {
  const NicKey key;
  const Fault& fault;
  const std::vector<RailPairStatus>& pairs;
  const bool others_alive;
  const Nanos now;
  Nic& nic;
  RailFinding& verdict;
  std::vector<RailAction> actions = {};

  void Do(RailAction::What what, const NicKey& peer = {}) { actions.push_back({.what = what, .peer = peer}); }
  void Report(EvidenceKind kind, const NicKey& peer, const std::string& detail) {
    Evidence evidence;
    evidence.observer = key.node;
    evidence.subject = key;
    evidence.kind = kind;
    evidence.when = now;
    evidence.peer = peer;
    evidence.detail = detail;
    actions.push_back({.what = RailAction::What::kReport, .evidence = std::move(evidence)});
  }
};

std::vector<RailAction> RailJudge::Judge(const std::string& nic, const Seen& seen, Nanos now) {
  Turn turn{.key = {node_, nic},
            .fault = seen.fault,
            .pairs = seen.pairs,
            .others_alive = seen.others_alive,
            .now = now,
            .nic = nics_.at(nic),
            .verdict = verdicts_.at(nic)};
  JudgeSilence(&turn);
  JudgePaths(&turn);
  JudgeInconclusive(&turn);
  return std::move(turn.actions);
}

void RailJudge::LinkDown(const std::string& name) {
  RailFinding& verdict = verdicts_.at(name);
  verdict.silent = verdict.port_dead = false;
  verdict.broken_paths.clear();
  verdict.large_lost.clear();
  Nic& nic = nics_.at(name);
  nic.pending_paths.clear();
  nic.inconclusive_since = 0;
}

void RailJudge::Rest() {
  for (auto& [name, nic] : nics_) nic.inconclusive_since = nic.unanswered_since = nic.suspected_by_peers_since = 0;
}

bool RailJudge::SetLargeLost(const std::string& nic, std::set<NicKey> peers) {
  std::set<NicKey>& lost = verdicts_.at(nic).large_lost;
  return std::exchange(lost, std::move(peers)) != lost;
}

bool RailJudge::AnyVerdict() const {
  return std::any_of(verdicts_.begin(), verdicts_.end(),
                     [](const auto& verdict) { return verdict.second.silent || !verdict.second.broken_paths.empty(); });
}

bool RailJudge::AnythingToJudge(const std::vector<RailPairStatus>& pairs) const {
  return std::any_of(pairs.begin(), pairs.end(), [](const auto& pair) { return pair.verdict == PairVerdict::kSilent; }) ||
         std::any_of(verdicts_.begin(), verdicts_.end(), [](const auto& verdict) { return verdict.second.silent; }) ||
         std::any_of(nics_.begin(), nics_.end(), [](const auto& nic) { return !nic.second.pending_paths.empty(); });
}

// Silence that this node observes itself with two others needs nobody's report; nor does that of a cable, which has one end.
bool RailJudge::RestsOnFacts(Turn* turn) const {
  std::set<std::string_view> silent;
  Nanos answered = 0;
  for (const RailPairStatus& pair : turn->pairs) {
    if (pair.key.own.nic != turn->key.nic) continue;
    if (pair.verdict == PairVerdict::kSilent) silent.insert(pair.key.peer.node);
    answered = std::max(answered, pair.answered_sent);
  }
  if (silent.size() >= (cabled_.contains(turn->key.nic) ? 1 : 2)) return true;
  if (turn->nic.suspected_by_peers_since == 0) turn->nic.suspected_by_peers_since = turn->now;
  turn->Do(RailAction::What::kSuspect);
  return turn->now - turn->nic.suspected_by_peers_since >= kFreshAnswer && turn->now - answered >= kFreshAnswer;
}

bool RailJudge::IsUnusable(Turn* turn) const {
  const Fault& fault = turn->fault;
  Nic& nic = turn->nic;
  if (!fault.unusable) nic.suspected_by_peers_since = 0;
  if (fault.unusable && !RestsOnFacts(turn)) return false;
  const bool may_answer = std::any_of(turn->pairs.begin(), turn->pairs.end(), [&](const RailPairStatus& pair) {
    return pair.key.own.nic == turn->key.nic && pair.verdict == PairVerdict::kAnswering && pair.fresh_verdict == PairVerdict::kUnknown;
  });
  if (!fault.unusable || fault.kind == FaultKind::kPort || !may_answer) {
    nic.unanswered_since = 0;
    return fault.unusable;
  }
  if (nic.unanswered_since == 0) nic.unanswered_since = turn->now;
  return turn->now - nic.unanswered_since >= kPathFaultHold;
}

void RailJudge::JudgeSilence(Turn* turn) {
  const Fault& fault = turn->fault;
  const Nanos now = turn->now;
  Nic& nic = turn->nic;
  RailFinding& verdict = turn->verdict;
  const bool answers = std::any_of(turn->pairs.begin(), turn->pairs.end(), [&](const RailPairStatus& pair) {
    return pair.key.own == turn->key && VerdictNow(pair, verdicts_) == PairVerdict::kAnswering;
  });
  // More answers, or their lack, may show what the fault is.
  if (!answers && (fault.kind == FaultKind::kInconclusive || fault.kind == FaultKind::kRail)) turn->Do(RailAction::What::kSuspect);
  const bool sharper = verdict.silent && nic.silence_report.Sharpened(fault.unusable, fault.kind, now);
  if (sharper || (!verdict.silent && IsUnusable(turn))) {
    if (!std::exchange(verdict.silent, true)) verdict.silent_since = now;
    nic.silence_report.Report(fault.kind, now);
    turn->Report(EvidenceKind::kRailSilent, {}, FaultText(turn->key, fault));
  }
  // The others stop reporting a dead port. From then on the matrix may show less than the port's fault, and the port stays dead.
  const bool port_fault = verdict.port_dead || fault.kind == FaultKind::kPort;
  const bool port_dead = verdict.silent && port_fault && fault.kind != FaultKind::kRail;
  if (std::exchange(verdict.port_dead, port_dead) != port_dead) turn->Do(RailAction::What::kChanged);
  // Only an answer ends the silence. While nothing is known of any pair, as after a restart of the others' daemons, it goes on.
  if (verdict.silent && !fault.unusable && answers) {
    verdict.silent = verdict.port_dead = false;
    turn->Do(RailAction::What::kRenew);
    turn->Report(EvidenceKind::kRailAnswers, {}, "");
  }
  // If all other nodes have gone nobody can end it, and the fault may be mended: jobs try the NIC, and report.
  if (!verdict.silent || AnybodyLeft(*turn)) {
    nic.alone_since = 0;
  } else if (nic.alone_since == 0) {
    nic.alone_since = now;
  } else if (now - nic.alone_since >= kAloneMax) {
    nic.alone_since = 0;
    verdict.silent = verdict.port_dead = false;
    turn->Do(RailAction::What::kRenew);
    turn->Report(EvidenceKind::kRailAnswers, {}, "no other node is left to ask");
    turn->Do(RailAction::What::kChanged);
  }
}

bool RailJudge::AnybodyLeft(const Turn& turn) {
  return turn.others_alive || std::any_of(turn.pairs.begin(), turn.pairs.end(), [&](const RailPairStatus& pair) {
           return pair.answered_sent != 0 && turn.now - pair.answered_sent < kAloneMax;
         });
}

void RailJudge::JudgePaths(Turn* turn) {
  const Fault& fault = turn->fault;
  std::set<NicKey>& reported = turn->verdict.broken_paths;
  std::set<NicKey> broken;
  if (fault.kind == FaultKind::kPath) broken.insert(fault.peers.begin(), fault.peers.end());
  std::erase_if(turn->nic.pending_paths, [&](const auto& entry) { return !broken.contains(entry.first); });
  for (const NicKey& peer : broken) {
    if (reported.contains(peer)) continue;
    const RailPairStatus* pair = FindPair(turn->pairs, {turn->key, peer});
    if (pair == nullptr || pair->state != PairState::kSilent) {
      turn->nic.pending_paths.erase(peer);
      continue;
    }
    const PendingPath pending = turn->nic.pending_paths.try_emplace(peer, PendingPath{turn->now, pair->measures.sent}).first->second;
    if (turn->now - pending.since < kPathFaultHold || pair->measures.sent - pending.sent < kPathFaultProbes) {
      turn->Do(RailAction::What::kAsk, peer);
      continue;
    }
    reported.insert(peer);
    turn->Do(RailAction::What::kChanged);
    Fault one = fault;
    one.peers = {peer};
    turn->Report(EvidenceKind::kPathBroken, peer, FaultText(turn->key, one));
  }
  for (auto peer = reported.begin(); peer != reported.end();) {
    if (broken.contains(*peer)) {
      ++peer;
      continue;
    }
    turn->Report(EvidenceKind::kPathBack, *peer, "");
    peer = reported.erase(peer);
    turn->Do(RailAction::What::kChanged);
  }
}

void RailJudge::JudgeInconclusive(Turn* turn) {
  const Fault& fault = turn->fault;
  if (fault.kind == FaultKind::kInconclusive && !fault.unusable) {
    // A peer that answers again, and still has to prove itself, is no reason for an inconclusive report. Nor is what others report of a
    // pair that this node does not probe: it probes, and judges by what it finds.
    for (const NicKey& peer : fault.peers)
      if (FindPair(turn->pairs, {turn->key, peer}) == nullptr) turn->Do(RailAction::What::kAsk, peer);
    const auto inconclusive = std::find_if(fault.peers.begin(), fault.peers.end(), [&](const NicKey& peer) {
      const RailPairStatus* pair = FindPair(turn->pairs, {turn->key, peer});
      return pair != nullptr && pair->state == PairState::kSilent;
    });
    if (inconclusive != fault.peers.end()) {
      turn->Do(RailAction::What::kAsk, *inconclusive);
      return ReportInconclusive(turn, *inconclusive, FaultText(turn->key, fault));
    }
  }
  std::vector<NicKey> strange;
  if (fault.kind == FaultKind::kNone) strange = NeverAnswered(turn->key.nic, turn->pairs, turn->now);
  if (strange.empty()) {
    turn->nic.inconclusive_since = 0;
    return;
  }
  ReportInconclusive(
      turn, strange.front(),
      absl::StrCat("no probe was ever answered by a peer of ", turn->key.ToString(), " (", strange.front().ToString(), " and ",
                   strange.size() - 1, " more were asked): a dead port, another VLAN, or a firewall that drops UDP"));
}

void RailJudge::ReportInconclusive(Turn* turn, const NicKey& peer, const std::string& text) {
  Nic& nic = turn->nic;
  const Nanos now = turn->now;
  if (nic.inconclusive_since == 0) nic.inconclusive_since = now;
  if (now - nic.inconclusive_since < kPathFaultHold ||
      (nic.inconclusive_reported_at >= nic.inconclusive_since && now - nic.inconclusive_reported_at < kInconclusiveInterval))
    return;
  nic.inconclusive_reported_at = now;
  turn->Report(EvidenceKind::kRailInconclusive, peer, text);
}

}  // namespace r2cc::health
