// Defines evidence: one observation about a NIC or a pair, with its observer and its time. Probes make it, the view judges it. Plain
// values.
#ifndef R2CC_HEALTH_EVIDENCE_EVIDENCE_H_
#define R2CC_HEALTH_EVIDENCE_EVIDENCE_H_

#include <compare>
#include <cstdint>
#include <string>

#include "base/core/clock.h"

namespace r2cc::health {

// NODE/NIC.
struct NicKey {
  std::string node;
  std::string nic;

  std::string ToString() const { return node + "/" + nic; }
  friend auto operator<=>(const NicKey&, const NicKey&) = default;
};

enum class EvidenceKind : uint8_t {
  // Facts of the subject's own kernel: these decide.
  kLinkUp,
  kLinkDown,  // detail: why, e.g. "link down", "no such interface"; value: kLinkGone, or 0
  // Measures of the subject's own node, periodic: these degrade.
  kRate,          // value: negotiated rate in bit/s; 0: unknown
  kErrors,        // value: permille of what the fullest counter's rule allows, kErrorsLimitPermille: broken; detail: counter and limit
  kCarrierFlips,  // value: times the carrier changed since the sample before; for the record
  kLinkBounces,   // value: times the link came up and did not last, since the last report; a record
  // The operator's settings. They are kept next to the physical state.
  kDrain,
  kDrainNow,  // and what is in flight is not waited for
  kUndrain,
  kDrainJob,    // detail: the job that is to keep off the NIC
  kUndrainJob,  // detail: the job
  kWeight,      // value: permille
  kDrillFail,   // value: ns until the drill ends automatically; 0: the usual time (health/view/node_state.h)
  kDrillRestore,
  // Reports of others: they make a NIC at most SUSPECT, and expire.
  kJobFenced,     // a job on this node gave up a link on the NIC; peer: the other end; detail: its cause
  kJobLinkUp,     // a job's link between the NIC and `peer` carries data
  kJobSlow,       // a job moves far less over the NIC (to `peer`) than over its best; value: permille of that. This degrades
  kJobSteady,     // that is over; value: permille
  kPeerSuspects,  // another daemon's job gave up a link to the NIC; peer: its own end
  // The daemon of a peer reports that its NIC (the subject) is dead, or no longer is. A dead NIC explains what jobs see on links to it: the
  // NIC at this end has no fault.
  kPeerNicFailed,
  kPeerNicBack,
  // Results of the daemons' rail probes, located in the matrix of all of them (health/view/localise.h).
  kRailSilent,        // no pair of the NIC answers; detail: where the fault is. This fails it
  kRailAnswers,       // that is over
  kPathBroken,        // the path to `peer` only; detail: where the fault is. This degrades
  kPathBack,          // that is over
  kRailInconclusive,  // silent to `peer`, and the end at fault is unknown; detail: what is missing. This makes SUSPECT
  // Packets of the rail's MTU are lost where small ones pass; detail: where the fault is. This degrades.
  kLargeLost,
  kLargePasses,  // that is over
  // Notices of the subnet manager of an InfiniBand fabric about the NIC's port, on any node. They make SUSPECT: the node's own kernel
  // decides.
  kFabricGone,  // it left the fabric; detail: the notice
  kFabricBack,
  // State of the port behind the NIC, from its RDMA device. It makes DEGRADED: the interface decides whether the NIC carries anything at
  // all.
  kRdmaDown,   // it was active and is not; detail: why
  kRdmaUp,     // it is active
  kRdmaEvent,  // an event of the device; value: how many since the last report; detail: the last one; a record
};
constexpr int kEvidenceKinds = static_cast<int>(EvidenceKind::kRdmaEvent) + 1;

// Value of kLinkDown: there is no such interface, so the lack of a cable is no excuse.
constexpr int64_t kLinkGone = 1;
// From this value of kErrors on a port is below its due.
constexpr int64_t kErrorsLimitPermille = 1000;

// The name of a kind, in lower case ("link-down").
const char* EvidenceKindName(EvidenceKind kind);

struct Evidence {
  std::string observer;  // the node whose daemon or job observed it
  NicKey subject;
  EvidenceKind kind = EvidenceKind::kLinkUp;
  int64_t value = 0;
  Nanos when = 0;  // this node's CLOCK_MONOTONIC
  NicKey peer;     // empty: does not apply
  std::string detail;
  // kJobSlow, kJobSteady: the user of the job that reports it, and whether all jobs of this node are that user's.
  uint32_t uid = 0;
  bool only_user = true;

  friend bool operator==(const Evidence&, const Evidence&) = default;
};

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_EVIDENCE_EVIDENCE_H_
