#include "health/evidence/evidence.h"

namespace r2cc::health {

const char* EvidenceKindName(EvidenceKind kind) {
  switch (kind) {
    case EvidenceKind::kLinkUp: return "link-up";
    case EvidenceKind::kLinkDown: return "link-down";
    case EvidenceKind::kRate: return "rate";
    case EvidenceKind::kErrors: return "errors";
    case EvidenceKind::kCarrierFlips: return "carrier-flips";
    case EvidenceKind::kLinkBounces: return "link-bounces";
    case EvidenceKind::kDrain: return "drain";
    case EvidenceKind::kDrainNow: return "drain-now";
    case EvidenceKind::kUndrain: return "undrain";
    case EvidenceKind::kDrainJob: return "drain-job";
    case EvidenceKind::kUndrainJob: return "undrain-job";
    case EvidenceKind::kWeight: return "weight";
    case EvidenceKind::kDrillFail: return "drill-fail";
    case EvidenceKind::kDrillRestore: return "drill-restore";
    case EvidenceKind::kJobFenced: return "job-fenced";
    case EvidenceKind::kJobLinkUp: return "job-link-up";
    case EvidenceKind::kJobSlow: return "job-slow";
    case EvidenceKind::kJobSteady: return "job-steady";
    case EvidenceKind::kPeerSuspects: return "peer-suspects";
    case EvidenceKind::kPeerNicFailed: return "peer-nic-failed";
    case EvidenceKind::kPeerNicBack: return "peer-nic-back";
    case EvidenceKind::kRailSilent: return "rail-silent";
    case EvidenceKind::kRailAnswers: return "rail-answers";
    case EvidenceKind::kPathBroken: return "path-broken";
    case EvidenceKind::kPathBack: return "path-back";
    case EvidenceKind::kRailInconclusive: return "rail-doubtful";
    case EvidenceKind::kLargeLost: return "large-lost";
    case EvidenceKind::kLargePasses: return "large-passes";
    case EvidenceKind::kFabricGone: return "fabric-gone";
    case EvidenceKind::kFabricBack: return "fabric-back";
    case EvidenceKind::kRdmaDown: return "rdma-down";
    case EvidenceKind::kRdmaUp: return "rdma-up";
    case EvidenceKind::kRdmaEvent: return "rdma-event";
  }
  return "unknown";
}

}  // namespace r2cc::health
