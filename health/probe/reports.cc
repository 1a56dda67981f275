#include "health/probe/reports.h"

#include <algorithm>

namespace r2cc::health {
namespace {

// A share is a measurement: finer steps would make each report news to the log.
constexpr uint32_t kShareStep = 50;

bool SaysSomethingAboutTheNic(JobReport::Cause cause) { return cause != JobReport::Cause::kNotOurs; }

// A link that broke or fell silent may have done so at either end; the own link monitor speaks of the own end alone.
bool MayBeThePeers(JobReport::Cause cause) { return cause == JobReport::Cause::kBroken || cause == JobReport::Cause::kSilent; }

}  // namespace

Evidence OperatorEvidence(const std::string& observer, const NicKey& nic, EvidenceKind kind, int64_t value, Nanos now) {
  Evidence evidence;
  evidence.observer = observer;
  evidence.subject = nic;
  evidence.kind = kind;
  evidence.value = value;
  evidence.when = now;
  return evidence;
}

std::vector<Evidence> JobEvidence(const std::string& node, const JobReport& report, Nanos now) {
  Evidence own;
  own.observer = node;
  own.subject = {node, report.nic};
  own.peer = report.peer;
  own.when = std::min(report.when, now);
  if (report.what == JobReport::What::kLinkUp) {
    own.kind = EvidenceKind::kJobLinkUp;
    return {own};
  }
  if (report.what == JobReport::What::kRailSlow || report.what == JobReport::What::kRailSteady) {
    own.kind = report.what == JobReport::What::kRailSlow ? EvidenceKind::kJobSlow : EvidenceKind::kJobSteady;
    own.value = (report.share_permille + kShareStep / 2) / kShareStep * kShareStep;
    own.detail = report.job + (report.peer.node.empty() ? "" : " to " + report.peer.ToString());
    return {own};
  }
  if (!SaysSomethingAboutTheNic(report.cause)) return {};
  own.kind = EvidenceKind::kJobFenced;
  own.detail = report.job + " gave up its link to " + report.peer.ToString() + ": " + report.cause_word;
  if (!MayBeThePeers(report.cause) || report.peer.node.empty() || report.peer.nic.empty() || report.peer.node == node) return {own};

  Evidence peers = own;
  peers.subject = report.peer;
  peers.peer = own.subject;
  peers.kind = EvidenceKind::kPeerSuspects;
  peers.detail = report.job + " on " + node + " gave up its link from " + own.subject.ToString() + ": " + report.cause_word;
  return {own, peers};
}

std::vector<Evidence> PeerEvidence(const NodeState* before, const NodeState& after, Nanos now) {
  std::vector<Evidence> found;
  const auto add = [&](const std::string& nic, EvidenceKind kind, const std::string& detail) {
    Evidence evidence;
    evidence.observer = after.node;
    evidence.subject = {after.node, nic};
    evidence.kind = kind;
    evidence.when = now;
    evidence.detail = detail;
    found.push_back(evidence);
  };
  for (const NicStatus& nic : after.nics) {
    const NicStatus* old = before == nullptr ? nullptr : before->Find(nic.identity.name);
    const bool was_dead = old != nullptr && old->state == NicState::kFailed;
    const bool is_dead = nic.state == NicState::kFailed;
    if (is_dead && !was_dead) add(nic.identity.name, EvidenceKind::kPeerNicFailed, nic.reason);
    if (was_dead && !is_dead) add(nic.identity.name, EvidenceKind::kPeerNicBack, nic.reason);
  }
  if (before == nullptr) return found;
  // A NIC that is no longer spoken of is no longer known to be dead.
  for (const NicStatus& old : before->nics)
    if (old.state == NicState::kFailed && after.Find(old.identity.name) == nullptr)
      add(old.identity.name, EvidenceKind::kPeerNicBack, "no longer configured");
  return found;
}

}  // namespace r2cc::health
