#include "health/probe/reports.h"

#include <algorithm>

namespace r2cc::health {
namespace {

// A share is a measurement: finer steps would make each report news to the log.
constexpr uint32_t kShareStep = 50;

bool IsAboutTheNic(JobReport::Cause cause) { return cause != JobReport::Cause::kNotOurs; }

// A link that broke or fell silent may have done so at either end; the own link monitor speaks of the own end alone.
bool MayBeThePeers(JobReport::Cause cause) { return cause == JobReport::Cause::kBroken || cause == JobReport::Cause::kSilent; }

}  // namespace

Evidence OperatorEvidence(const std::string& observer, const NicKey& nic, EvidenceKind kind, int64_t value, Nanos now,
                          const std::string& job) {
  Evidence evidence;
  evidence.observer = observer;
  evidence.subject = nic;
  evidence.kind = kind;
  evidence.value = value;
  evidence.when = now;
  evidence.detail = job;
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
    own.uid = report.uid;
    own.only_user = report.only_user;
    own.detail = report.job + (report.peer.node.empty() ? "" : " to " + report.peer.ToString());
    return {own};
  }
  if (!IsAboutTheNic(report.cause)) return {};
  own.kind = EvidenceKind::kJobFenced;
  const std::string from = report.lost.empty() ? "" : report.nic + " to " + report.peer.node + ": " + report.lost + "; ";
  const std::string gave_up = report.what == JobReport::What::kProofFailed ? " cannot open its link " : " gave up its link ";
  own.detail = from + report.job + gave_up + "to " + report.peer.ToString() + ": " + report.cause_text;
  if (!MayBeThePeers(report.cause) || report.peer.node.empty() || report.peer.nic.empty() || report.peer.node == node) return {own};

  Evidence peers = own;
  peers.subject = report.peer;
  peers.peer = own.subject;
  peers.kind = EvidenceKind::kPeerSuspects;
  peers.detail = (from.empty() ? "" : node + "/" + from) + report.job + " on " + node + gave_up + "from " + own.subject.ToString() + ": " +
                 report.cause_text;
  return {own, peers};
}

}  // namespace r2cc::health
