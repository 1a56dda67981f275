// The part of the rail watch that judges this node's NICs.
#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/rails/rail_watch.h"

namespace r2cc::daemon {
namespace {

// A doubt is told again so often while it lasts.
constexpr Nanos kDoubtInterval = 2 * kNanosPerSecond;

// Null: it is none of this node's.
const health::RailPairStatus* FindPair(const std::vector<health::RailPairStatus>& pairs, const health::PairKey& key) {
  const auto found =
      std::lower_bound(pairs.begin(), pairs.end(), key, [](const auto& pair, const auto& wanted) { return pair.key < wanted; });
  return found == pairs.end() || found->key != key ? nullptr : &*found;
}

}  // namespace

bool RailWatch::AnythingToJudge(const std::vector<health::RailPairStatus>& pairs) const {
  return accused_.here ||
         std::any_of(pairs.begin(), pairs.end(), [](const auto& pair) { return pair.verdict == health::PairVerdict::kSilent; }) ||
         std::any_of(nics_.begin(), nics_.end(),
                     [](const auto& nic) { return nic.second.verdict->silent || !nic.second.paths_held.empty(); });
}

void RailWatch::Judge() {
  const bool told = std::any_of(verdicts_.begin(), verdicts_.end(),
                                [](const auto& verdict) { return verdict.second.silent || !verdict.second.broken_paths.empty(); });
  quiet_ = !in_doubt_ && !told && large_.empty() && !accused_.here && accused_.ports.empty() && prober_.Settled();
  if (quiet_) {
    for (auto& [name, nic] : nics_) nic.doubt_since = nic.mute_since = nic.accused_since = 0;
    return;
  }
  const std::vector<health::RailPairStatus> pairs = prober_.Pairs();
  const bool anything = AnythingToJudge(pairs);
  in_doubt_ = anything || !accused_.ports.empty();
  const health::ProbeMatrix matrix = anything ? matrix_.Matrix(pairs, verdicts_) : health::ProbeMatrix();
  for (const std::string& name : order_) {
    Nic& nic = nics_.at(name);
    if (nic.link_up && !sockets_.Drops(name)) JudgeNic(&nic, matrix, pairs);
  }
  JudgeLarge(pairs);
}

void RailWatch::JudgeNic(Nic* nic, const health::ProbeMatrix& matrix, const std::vector<health::RailPairStatus>& pairs) {
  const health::Fault fault = health::Localise(matrix, {node_, nic->identity.name});
  JudgeSilence(nic, fault, pairs);
  JudgePaths(nic, fault, pairs);
  JudgeDoubt(nic, fault, pairs);
}

// Silence that this node hears itself with two others needs nobody's word; nor does that of a cable, which has one end.
bool RailWatch::RestsOnFacts(Nic* nic, const std::vector<health::RailPairStatus>& pairs) {
  const Nanos now = seams_.executor->Now();
  std::set<std::string_view> silent;
  Nanos answered = 0;
  for (const health::RailPairStatus& pair : pairs) {
    if (pair.key.own.nic != nic->identity.name) continue;
    if (pair.verdict == health::PairVerdict::kSilent) silent.insert(pair.key.peer.node);
    answered = std::max(answered, pair.answered_sent);
  }
  if (silent.size() >= (cables_.contains(nic->identity.name) ? 1 : 2)) return true;
  if (nic->accused_since == 0) nic->accused_since = now;
  Suspect(nic->identity.name);
  return now - nic->accused_since >= kFreshAnswer && now - answered >= kFreshAnswer;
}

bool RailWatch::IsUnusable(Nic* nic, const health::Fault& fault, const std::vector<health::RailPairStatus>& pairs) {
  if (!fault.unusable) nic->accused_since = 0;
  if (fault.unusable && !RestsOnFacts(nic, pairs)) return false;
  const bool may_answer = std::any_of(pairs.begin(), pairs.end(), [&](const health::RailPairStatus& pair) {
    return pair.key.own.nic == nic->identity.name && pair.verdict == health::PairVerdict::kAnswering &&
           pair.fresh_verdict == health::PairVerdict::kUnknown;
  });
  const Nanos now = seams_.executor->Now();
  if (!fault.unusable || fault.kind == health::FaultKind::kPort || !may_answer) {
    nic->mute_since = 0;
    return fault.unusable;
  }
  if (nic->mute_since == 0) nic->mute_since = now;
  return now - nic->mute_since >= kPathFaultHold;
}

void RailWatch::JudgeSilence(Nic* nic, const health::Fault& fault, const std::vector<health::RailPairStatus>& pairs) {
  const health::NicKey key = {node_, nic->identity.name};
  health::RailVerdict& verdict = *nic->verdict;
  const bool answers = std::any_of(pairs.begin(), pairs.end(), [&](const health::RailPairStatus& pair) {
    return pair.key.own == key && VerdictNow(pair, verdicts_) == health::PairVerdict::kAnswering;
  });
  // More answers, or their lack, may show what the fault is.
  if (!answers && (fault.kind == health::FaultKind::kCannotTell || fault.kind == health::FaultKind::kRail)) Suspect(key.nic);
  const Nanos now = seams_.executor->Now();
  const bool sharper = verdict.silent && nic->told.Sharpened(fault.unusable, fault.kind, now);
  if (sharper || (!verdict.silent && IsUnusable(nic, fault, pairs))) {
    if (!std::exchange(verdict.silent, true)) verdict.silent_since = now;
    nic->told.Tell(fault.kind, now);
    Tell(*nic, health::EvidenceKind::kRailSilent, {}, health::FaultText(key, fault));
  }
  // The others stop reporting a dead port. From then on the matrix may show less than the port's fault, and the port stays dead.
  const bool port_fault = verdict.port_dead || fault.kind == health::FaultKind::kPort;
  const bool port_dead = verdict.silent && port_fault && fault.kind != health::FaultKind::kRail;
  if (std::exchange(verdict.port_dead, port_dead) != port_dead) OnVerdictChanged();
  // Only an answer ends the silence. While nothing is known of any pair, as after a restart of the others' daemons, it goes on.
  if (verdict.silent && !fault.unusable && answers) {
    verdict.silent = verdict.port_dead = false;
    prober_.Renew(key, now);
    Tell(*nic, health::EvidenceKind::kRailAnswers, {}, "");
  }
  // Where everybody has gone nobody can end it, and the fault may be mended: jobs try the NIC, and tell.
  if (!verdict.silent || AnybodyLeft(pairs)) {
    nic->alone_since = 0;
  } else if (nic->alone_since == 0) {
    nic->alone_since = now;
  } else if (now - nic->alone_since >= kAloneMax) {
    nic->alone_since = 0;
    verdict.silent = verdict.port_dead = false;
    prober_.Renew(key, now);
    Tell(*nic, health::EvidenceKind::kRailAnswers, {}, "nobody is left to ask");
    OnVerdictChanged();
  }
}

bool RailWatch::AnybodyLeft(const std::vector<health::RailPairStatus>& pairs) const {
  const Nanos now = seams_.executor->Now();
  for (const auto& [name, entry] : view_->nodes())
    if (name != node_ && now - entry.heard < health::kNodeLease) return true;
  return std::any_of(pairs.begin(), pairs.end(),
                     [&](const auto& pair) { return pair.answered_sent != 0 && now - pair.answered_sent < kAloneMax; });
}

void RailWatch::JudgeDoubt(Nic* nic, const health::Fault& fault, const std::vector<health::RailPairStatus>& pairs) {
  const Nanos now = seams_.executor->Now();
  const health::NicKey key = {node_, nic->identity.name};
  if (fault.kind == health::FaultKind::kCannotTell && !fault.unusable) {
    // A peer that answers again, and still has to prove itself, is no reason for a doubt. Nor is what others say of a pair that this node
    // does not probe: it looks, and judges by what it finds.
    for (const health::NicKey& peer : fault.peers)
      if (FindPair(pairs, {key, peer}) == nullptr) prober_.Ask({key, peer}, now);
    const auto doubtful = std::find_if(fault.peers.begin(), fault.peers.end(), [&](const health::NicKey& peer) {
      const health::RailPairStatus* pair = FindPair(pairs, {key, peer});
      return pair != nullptr && pair->state == health::PairState::kSilent;
    });
    if (doubtful != fault.peers.end()) {
      prober_.Ask({key, *doubtful}, now);
      return Doubt(nic, *doubtful, health::FaultText(key, fault));
    }
  }
  std::vector<health::NicKey> strange;
  if (fault.kind == health::FaultKind::kNone) strange = NeverHeard(key.nic, pairs, now);
  if (strange.empty()) {
    nic->doubt_since = 0;
    return;
  }
  Doubt(nic, strange.front(),
        absl::StrCat("nobody ever answered ", key.ToString(), " (", strange.front().ToString(), " and ", strange.size() - 1,
                     " more were asked): a dead port, another VLAN, or a firewall that drops UDP"));
}

// The view forgets a doubt that is not repeated.
void RailWatch::Doubt(Nic* nic, const health::NicKey& peer, const std::string& doubt) {
  const Nanos now = seams_.executor->Now();
  if (nic->doubt_since == 0) nic->doubt_since = now;
  if (now - nic->doubt_since < kPathFaultHold || (nic->doubt_told >= nic->doubt_since && now - nic->doubt_told < kDoubtInterval)) return;
  nic->doubt_told = now;
  Tell(*nic, health::EvidenceKind::kRailDoubtful, peer, doubt);
}

void RailWatch::JudgePaths(Nic* nic, const health::Fault& fault, const std::vector<health::RailPairStatus>& pairs) {
  const Nanos now = seams_.executor->Now();
  const health::NicKey key = {node_, nic->identity.name};
  health::RailVerdict& verdict = *nic->verdict;
  std::set<health::NicKey> broken;
  if (fault.kind == health::FaultKind::kPath) broken.insert(fault.peers.begin(), fault.peers.end());
  std::erase_if(nic->paths_held, [&](const auto& entry) { return !broken.contains(entry.first); });
  for (const health::NicKey& peer : broken) {
    if (verdict.broken_paths.contains(peer)) continue;
    const health::RailPairStatus* pair = FindPair(pairs, {key, peer});
    if (pair == nullptr || pair->state != health::PairState::kSilent) {
      nic->paths_held.erase(peer);
      continue;
    }
    const Nic::Held held = nic->paths_held.try_emplace(peer, Nic::Held{now, pair->measures.sent}).first->second;
    if (now - held.since < kPathFaultHold || pair->measures.sent - held.sent < kPathFaultProbes) {
      prober_.Ask(pair->key, now);
      continue;
    }
    verdict.broken_paths.insert(peer);
    OnVerdictChanged();
    health::Fault one = fault;
    one.peers = {peer};
    Tell(*nic, health::EvidenceKind::kPathBroken, peer, health::FaultText(key, one));
  }
  for (auto told = verdict.broken_paths.begin(); told != verdict.broken_paths.end();) {
    if (broken.contains(*told)) {
      ++told;
      continue;
    }
    Tell(*nic, health::EvidenceKind::kPathBack, *told, "");
    told = verdict.broken_paths.erase(told);
    OnVerdictChanged();
  }
}

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

void RailWatch::OnVerdictChanged() {
  reported_.prober_revision = 0;
  outputs_.on_state();
}

}  // namespace r2cc::daemon
