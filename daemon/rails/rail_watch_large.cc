// The part of the rail watch that has to do with large packets, and what it reports.
#include <algorithm>
#include <utility>

#include "daemon/rails/rail_watch.h"

namespace r2cc::daemon {

void RailWatch::SetMtu(const std::string& name, uint32_t mtu) {
  const auto found = nics_.find(name);
  if (found == nics_.end() || std::exchange(found->second.mtu, mtu) == mtu) return;
  prober_.SetMtu(name, mtu);
}

LargeWatch::Seen RailWatch::SeeLarge(const health::NicKey& nic, const std::vector<health::RailPairStatus>& pairs,
                                     const health::ProbeMatrix& matrix) const {
  LargeWatch::Seen seen;
  std::set<std::string_view> nodes;
  for (const health::RailPairStatus& pair : pairs) {
    if (pair.key.own != nic) continue;
    nodes.insert(pair.key.peer.node);
    if (pair.large != health::PairVerdict::kSilent) continue;
    // The least that is lost, whichever pair loses it; what passes is found out one after the other.
    const bool less = pair.loss.passed_bytes != 0 && (seen.loss.passed_bytes == 0 || pair.loss.passed_bytes < seen.loss.passed_bytes);
    if (seen.lost.empty() || less) seen.loss = pair.loss;
    seen.lost.insert(pair.key.peer);
  }
  seen.nodes = nodes.size();
  if (!seen.lost.empty()) seen.fault = health::Localise(matrix, nic);
  return seen;
}

void RailWatch::JudgeLarge(const std::vector<health::RailPairStatus>& pairs) {
  const bool lost = std::any_of(pairs.begin(), pairs.end(), [](const auto& pair) { return pair.large == health::PairVerdict::kSilent; });
  if (!lost && large_.empty()) return;
  const Nanos now = seams_.executor->Now();
  const health::ProbeMatrix matrix = lost ? matrix_.LargeMatrix(pairs) : health::ProbeMatrix();
  for (const std::string& name : order_) {
    if (!nics_.at(name).link_up || sockets_.Drops(name)) continue;
    const health::NicKey key = {node_, name};
    const LargeWatch::Seen seen = SeeLarge(key, pairs, matrix);
    LargeWatch::Verdict verdict = large_.Judge(key, seen, now);
    if (verdict.ask) {
      prober_.SuspectLarge(name, {}, now);
      inconclusive_ = true;
    }
    if (verdict.report.has_value())
      Emit(name, verdict.report->empty() ? health::EvidenceKind::kLargePasses : health::EvidenceKind::kLargeLost, *verdict.report);
    if (judge_.SetLargeLost(name, std::move(verdict.broken))) OnVerdictChanged();
  }
}

void RailWatch::Emit(const std::string& nic, health::EvidenceKind kind, const std::string& detail) {
  health::Evidence evidence;
  evidence.observer = node_;
  evidence.subject = {node_, nic};
  evidence.kind = kind;
  evidence.when = seams_.executor->Now();
  evidence.detail = detail;
  outputs_.evidence(evidence);
}

health::LargeFault RailWatch::LargeVerdict(const std::string& nic) const {
  const std::vector<health::RailPairStatus> pairs = prober_.Pairs();
  const LargeWatch::Seen seen = SeeLarge({node_, nic}, pairs, matrix_.LargeMatrix(pairs));
  return {seen.fault, seen.loss};
}

health::RailReport RailWatch::Report() const {
  health::RailReport report;
  report.probe_nonce = keys_.nonce();
  report.probe_key = keys_.public_key();
  for (const auto& [name, nic] : nics_) {
    const bool takes_large = sockets_.port(name) != 0 && !sockets_.Drops(name);
    report.nics[name] = {sockets_.port(name), judge_.verdicts().at(name).port_dead, sockets_.trouble(name),
                         takes_large ? std::min<uint32_t>(nic.mtu, health::kDatagramBytesMax) : 0};
  }
  if (reported_.prober_revision != prober_.revision() || (reported_.silent && reported_.view_revision != view_->revision())) {
    const std::vector<health::RailPairStatus> pairs = prober_.Pairs();
    const bool silent =
        std::any_of(pairs.begin(), pairs.end(), [](const auto& pair) { return pair.verdict == health::PairVerdict::kSilent; });
    reported_ = {prober_.revision(), view_->revision(), silent, matrix_.Reports(pairs, judge_.verdicts())};
  }
  report.pairs = reported_.pairs;
  return report;
}

health::Fault RailWatch::Verdict(const std::string& nic) const {
  return health::Localise(matrix_.Matrix(prober_.Pairs(), judge_.verdicts()), {node_, nic});
}

}  // namespace r2cc::daemon
