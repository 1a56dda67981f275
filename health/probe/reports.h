// Makes evidence of facts that are reported and not measured: by the operator and by jobs. Pure functions.
#ifndef R2CC_HEALTH_PROBE_REPORTS_H_
#define R2CC_HEALTH_PROBE_REPORTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "health/evidence/evidence.h"

namespace r2cc::health {

// `kind`: kDrain, kDrainNow, kUndrain, kDrainJob, kUndrainJob, kWeight, kDrillFail or kDrillRestore. `observer`: the node whose daemon the
// operator asked. `job`: for kDrainJob and kUndrainJob.
Evidence OperatorEvidence(const std::string& observer, const NicKey& nic, EvidenceKind kind, int64_t value, Nanos now,
                          const std::string& job = "");

// The report of a job's plugin about one of its links, with the rail matched to this node's NIC. Every field has been validated.
struct JobReport {
  enum class What : uint8_t { kLinkFenced, kLinkUp, kRailSlow, kRailSteady, kProofFailed };
  // Why it gave the link up, as far as it matters here.
  enum class Cause : uint8_t {
    kOwnLinkDown,  // the plugin's own link monitor
    kBroken,       // socket error, completion error
    kSilent,       // no answer
    kNotOurs,      // a page notice, the peer's own fence, a closed flow, a simulated fault: no evidence about the NIC
  };
  What what = What::kLinkUp;
  Cause cause = Cause::kNotOurs;
  std::string cause_text;  // for a person: "its connection broke"
  std::string lost;        // what the link does not carry: "packets over 1500 bytes are lost"; empty: the cause is complete
  // kRailSlow, kRailSteady: what the rail moves, compared with the job's best rail. At most 1000.
  uint32_t share_permille = 1000;
  std::string job;        // for a person: name or process id
  uint32_t uid = 0;       // the user of the job
  bool only_user = true;  // all jobs of this node are that user's
  std::string nic;        // this node's
  NicKey peer;            // empty names: not known
  Nanos when = 0;         // from the job; the view does not let it run ahead of `now`
};

// At most two pieces of evidence: about the own NIC, and, if the peer's end is as likely the cause, about the peer's (kPeerSuspects,
// which the daemon may pass on to the peer).
std::vector<Evidence> JobEvidence(const std::string& node, const JobReport& report, Nanos now);

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_PROBE_REPORTS_H_
