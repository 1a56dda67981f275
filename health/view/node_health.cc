#include "health/view/node_health.h"

#include <algorithm>
#include <utility>

#include "base/core/check.h"

namespace r2cc::health {
namespace {

// NICs of other nodes, named by their daemons.
constexpr size_t kDeadPeersMax = 65'536;

std::string InGbits(uint64_t bits_per_s) {
  const uint64_t tenths = (bits_per_s + 50'000'000) / 100'000'000;
  return std::to_string(tenths / 10) + (tenths % 10 != 0 ? "." + std::to_string(tenths % 10) : "") + " Gbit/s";
}

}  // namespace

NodeStatus StatusFor(const std::vector<NicStatus>& nics, bool initializing) {
  if (initializing) return NodeStatus::kInitializing;
  const bool some_carry = std::any_of(nics.begin(), nics.end(), [](const NicStatus& nic) { return CarriesTraffic(nic.state); });
  const bool no_fault = std::all_of(
      nics.begin(), nics.end(), [](const NicStatus& nic) { return nic.state == NicState::kHealthy || nic.state == NicState::kUncabled; });
  if (no_fault && (some_carry || nics.empty())) return NodeStatus::kHealthy;
  return some_carry ? NodeStatus::kDegraded : NodeStatus::kUnhealthy;
}

NodeHealth::NodeHealth(std::string node, std::vector<NicIdentity> nics, const NodePolicy& policy, const OperatorSettings& settings,
                       Nanos now, const std::set<std::string>& cabled)
    : node_(std::move(node)), policy_(policy), log_(policy.evidence_max), now_(now) {
  for (NicIdentity& identity : nics) {
    order_.push_back(identity.name);
    const bool fresh =
        nics_
            .emplace(identity.name,
                     Nic{.identity = identity, .machine = NicMachine(policy.nic, now), .cabled = cabled.contains(identity.name)})
            .second;
    R2CC_CHECK(fresh);
  }
  for (const auto& [name, setting] : settings) {
    const auto nic = nics_.find(name);
    if (nic == nics_.end()) continue;
    Restore(&nic->second, setting, now);
  }
  UpdateSnapshot();
}

void NodeHealth::Restore(Nic* nic, const OperatorSetting& setting, Nanos now) {
  nic->weight_permille = std::min(setting.weight_permille, kFullWeightPermille);
  nic->drained_jobs = setting.drained_jobs;
  if (setting.drained) nic->machine.Handle(NicEvent::kDrain, now);
  if (!setting.drill_failed) return;
  nic->machine.Handle(NicEvent::kDrillFail, now);
  nic->machine.EndDrillAt(std::clamp(setting.drill_until, now + 1, now + kDrillMax));
}

void NodeHealth::Add(const NicIdentity& identity, const OperatorSetting& setting, bool cabled, Nanos now) {
  now_ = std::max(now_, now);
  const auto [nic, fresh] =
      nics_.emplace(identity.name, Nic{.identity = identity, .machine = NicMachine(policy_.nic, now_), .cabled = cabled});
  R2CC_CHECK(fresh);
  order_.push_back(identity.name);
  Restore(&nic->second, setting, now_);
  UpdateSnapshot();
}

void NodeHealth::Remove(const std::string& nic) {
  if (nics_.erase(nic) == 0) return;
  std::erase(order_, nic);
  UpdateSnapshot();
}

std::vector<NicChange> NodeHealth::Handle(const Evidence& evidence) {
  std::vector<NicChange> changes;
  Advance(evidence.when, &changes);
  log_.Add(evidence);
  if (evidence.subject.node != node_) {
    JudgePeer(evidence, &changes);
  } else if (const auto nic = nics_.find(evidence.subject.nic); nic != nics_.end()) {
    Judge(&nic->second, evidence, &changes);
  }
  UpdateSnapshot();
  return changes;
}

std::vector<NicChange> NodeHealth::Tick(Nanos now) {
  std::vector<NicChange> changes;
  Advance(now, &changes);
  UpdateSnapshot();
  return changes;
}

Nanos NodeHealth::next_tick() const {
  Nanos next = NicMachine::kNever;
  for (const auto& [name, nic] : nics_) {
    next = std::min(next, nic.machine.next_tick());
    if (!nic.errors_complaint.empty()) next = std::min(next, nic.errors_until);
    for (const auto& [peer, slow] : nic.slow) next = std::min(next, slow.until);
  }
  return next;
}

void NodeHealth::Advance(Nanos now, std::vector<NicChange>* changes) {
  now_ = std::max(now_, now);
  for (auto& [name, nic] : nics_) {
    while (nic.machine.next_tick() <= now_) {
      const bool drilled = nic.machine.drill_failed();
      const NicTransition transition = nic.machine.Tick(now_);
      if (drilled && !nic.machine.drill_failed()) ended_drills_.push_back(name);
      if (transition.changed()) changes->push_back({name, transition, now_});
    }
    if (!nic.errors_complaint.empty() && now_ >= nic.errors_until) {
      nic.errors_complaint.clear();
      FeedImpairments(&nic, changes);
    }
    if (std::erase_if(nic.slow, [this](const auto& entry) { return now_ >= entry.second.until; }) > 0) FeedImpairments(&nic, changes);
  }
}

void NodeHealth::Judge(Nic* nic, const Evidence& evidence, std::vector<NicChange>* changes) {
  switch (evidence.kind) {
    case EvidenceKind::kLinkUp: nic->cabled = true; return Feed(nic, NicEvent::kLinkUp, evidence.detail, changes);
    case EvidenceKind::kLinkDown: return JudgeLinkDown(nic, evidence, changes);
    case EvidenceKind::kRate: return JudgeRate(nic, evidence, changes);
    case EvidenceKind::kErrors: return JudgeErrors(nic, evidence, changes);
    case EvidenceKind::kDrain: return Feed(nic, NicEvent::kDrain, evidence.detail, changes);
    case EvidenceKind::kDrainNow: nic->drained_now = true; return Feed(nic, NicEvent::kDrain, evidence.detail, changes);
    case EvidenceKind::kUndrain: nic->drained_now = false; return Feed(nic, NicEvent::kUndrain, evidence.detail, changes);
    case EvidenceKind::kDrainJob:
      if (nic->drained_jobs.size() < kDrainedJobsMax) nic->drained_jobs.insert(evidence.detail);
      return;
    case EvidenceKind::kUndrainJob: nic->drained_jobs.erase(evidence.detail); return;
    case EvidenceKind::kDrillFail: return JudgeDrill(nic, evidence, changes);
    case EvidenceKind::kDrillRestore: return Feed(nic, NicEvent::kDrillRestore, evidence.detail, changes);
    case EvidenceKind::kWeight:
      nic->weight_permille = static_cast<uint16_t>(std::clamp<int64_t>(evidence.value, 0, kFullWeightPermille));
      return;
    case EvidenceKind::kJobFenced:
    case EvidenceKind::kPeerSuspects: return JudgeComplaint(nic, evidence, changes);
    case EvidenceKind::kJobLinkUp: return Forgive(nic, evidence.peer, changes);
    case EvidenceKind::kJobSlow:
    case EvidenceKind::kJobSteady: return JudgeSlow(nic, evidence, changes);
    case EvidenceKind::kRailSilent: return Feed(nic, NicEvent::kSilent, evidence.detail, changes);
    case EvidenceKind::kRailAnswers: return Feed(nic, NicEvent::kAnswered, "", changes);
    case EvidenceKind::kPathBroken:
    case EvidenceKind::kPathBack: return JudgePath(nic, evidence, changes);
    case EvidenceKind::kLargeLost:
    case EvidenceKind::kLargePasses: return JudgeLarge(nic, evidence, changes);
    case EvidenceKind::kFabricGone:
    case EvidenceKind::kRailInconclusive: return JudgeComplaint(nic, evidence, changes);
    case EvidenceKind::kFabricBack: return Forgive(nic, evidence.peer, changes);
    case EvidenceKind::kRdmaDown:
    case EvidenceKind::kRdmaUp: return JudgeRdma(nic, evidence, changes);
    case EvidenceKind::kRdmaEvent:
    case EvidenceKind::kCarrierFlips:  // for the record: the link's state decides
    case EvidenceKind::kLinkBounces:
    case EvidenceKind::kPeerNicFailed:
    case EvidenceKind::kPeerNicBack: return;
  }
}

void NodeHealth::JudgeLinkDown(Nic* nic, const Evidence& evidence, std::vector<NicChange>* changes) {
  const bool fault = nic->cabled || evidence.value == kLinkGone;
  Feed(nic, fault ? NicEvent::kLinkDown : NicEvent::kNoCable, evidence.detail, changes);
  // The links that were slow are gone, and what was silent is explained.
  nic->slow.clear();
  nic->broken_paths.clear();
  nic->large_complaint.clear();
  FeedImpairments(nic, changes);
}

// If it is repeated, it lasts from now on for the last given time.
void NodeHealth::JudgeDrill(Nic* nic, const Evidence& evidence, std::vector<NicChange>* changes) {
  Feed(nic, NicEvent::kDrillFail, evidence.detail, changes);
  nic->machine.EndDrillAt(now_ + std::clamp(evidence.value > 0 ? evidence.value : kDrillDefault, kDrillMin, kDrillMax));
}

void NodeHealth::JudgeRate(Nic* nic, const Evidence& evidence, std::vector<NicChange>* changes) {
  const uint64_t rate = evidence.value > 0 ? static_cast<uint64_t>(evidence.value) : 0;
  nic->kernel_rate_bits_per_s = rate;
  nic->best_rate_bits_per_s = std::max(nic->best_rate_bits_per_s, rate);
  CompareRate(nic, changes);
}

void NodeHealth::CompareRate(Nic* nic, std::vector<NicChange>* changes) {
  const uint64_t rate = nic->kernel_rate_bits_per_s;
  const uint64_t due = nic->identity.rate_bits_per_s != 0 ? nic->identity.rate_bits_per_s : nic->best_rate_bits_per_s;
  // In steps, as rates are large: due * permille might not fit for a rate that makes no sense.
  const bool low = rate != 0 && rate < due / 1000 * policy_.rate_min_permille;
  nic->rate_complaint = low ? "link runs at " + InGbits(rate) + " instead of " + InGbits(due) : "";
  FeedImpairments(nic, changes);
}

void NodeHealth::JudgeErrors(Nic* nic, const Evidence& evidence, std::vector<NicChange>* changes) {
  if (evidence.value < kErrorsLimitPermille) return;
  nic->errors_complaint = evidence.detail;
  nic->errors_until = now_ + policy_.errors_clear;
  FeedImpairments(nic, changes);
}

// Never more than DEGRADED: small packets pass, and the plan takes its jobs off the paths that lose large ones.
void NodeHealth::JudgeLarge(Nic* nic, const Evidence& evidence, std::vector<NicChange>* changes) {
  nic->large_complaint = evidence.kind == EvidenceKind::kLargeLost ? evidence.detail : "";
  FeedImpairments(nic, changes);
}

// Never more than DEGRADED: TCP may go on over the interface, and jobs that use the device get it from the device.
void NodeHealth::JudgeRdma(Nic* nic, const Evidence& evidence, std::vector<NicChange>* changes) {
  nic->rdma_complaint = evidence.kind == EvidenceKind::kRdmaDown ? evidence.detail : "";
  FeedImpairments(nic, changes);
}

void NodeHealth::JudgeComplaint(Nic* nic, const Evidence& evidence, std::vector<NicChange>* changes) {
  if (dead_peers_.contains(evidence.peer)) return;
  nic->suspected_by.insert(nic->suspected_by.size() < kPeersMax ? evidence.peer : NicKey{});
  Feed(nic, NicEvent::kSuspected, evidence.detail, changes);
}

void NodeHealth::JudgePath(Nic* nic, const Evidence& evidence, std::vector<NicChange>* changes) {
  if (evidence.kind == EvidenceKind::kPathBack) {
    nic->broken_paths.erase(evidence.peer);
  } else if (nic->broken_paths.size() < kPeersMax) {
    nic->broken_paths[evidence.peer] = evidence.detail;
  }
  FeedImpairments(nic, changes);
}

std::string NodeHealth::PathReason(const Nic& nic) {
  if (nic.broken_paths.empty()) return "";
  const size_t others = nic.broken_paths.size() - 1;
  return nic.broken_paths.begin()->second + (others > 0 ? ", and " + std::to_string(others) + " more" : "");
}

void NodeHealth::JudgePeer(const Evidence& evidence, std::vector<NicChange>* changes) {
  if (evidence.kind == EvidenceKind::kPeerNicBack) dead_peers_.erase(evidence.subject);
  if (evidence.kind != EvidenceKind::kPeerNicFailed) return;
  if (dead_peers_.size() < kDeadPeersMax) dead_peers_.insert(evidence.subject);
  for (auto& [name, nic] : nics_) {
    Forgive(&nic, evidence.subject, changes);
    if (std::erase_if(nic.slow, [&](const auto& entry) { return entry.first.second == evidence.subject; }) > 0)
      FeedImpairments(&nic, changes);
  }
}

void NodeHealth::Forgive(Nic* nic, const NicKey& peer, std::vector<NicChange>* changes) {
  if (nic->suspected_by.erase(peer) == 0 || !nic->suspected_by.empty()) return;
  Feed(nic, NicEvent::kForgiven, "", changes);
}

void NodeHealth::Feed(Nic* nic, NicEvent event, const std::string& cause, std::vector<NicChange>* changes) {
  const NicTransition transition = nic->machine.Handle(event, now_, cause);
  if (transition.changed()) changes->push_back({nic->identity.name, transition, now_});
}

void NodeHealth::FeedImpairments(Nic* nic, std::vector<NicChange>* changes) {
  std::string causes;
  for (const std::string& cause :
       {nic->rate_complaint, nic->errors_complaint, nic->rdma_complaint, PathReason(*nic), nic->large_complaint, SlowReason(*nic)})
    if (!cause.empty()) causes += (causes.empty() ? "" : "; ") + cause;
  Feed(nic, causes.empty() ? NicEvent::kUnimpaired : NicEvent::kImpaired, causes, changes);
}

std::vector<NicChange> NodeHealth::SetRate(const std::string& nic, uint64_t rate_bits_per_s, Nanos now) {
  std::vector<NicChange> changes;
  const auto found = nics_.find(nic);
  if (found == nics_.end() || found->second.identity.rate_bits_per_s == rate_bits_per_s) return changes;
  Advance(now, &changes);
  found->second.identity.rate_bits_per_s = rate_bits_per_s;
  CompareRate(&found->second, &changes);
  UpdateSnapshot();
  return changes;
}

void NodeHealth::SetAddress(const std::string& nic, const std::string& address) {
  const auto found = nics_.find(nic);
  if (found == nics_.end()) return;
  found->second.identity.address = address;
  UpdateSnapshot();
}

void NodeHealth::SetMtu(const std::string& nic, uint32_t mtu) {
  const auto found = nics_.find(nic);
  if (found == nics_.end()) return;
  found->second.mtu = mtu;
  UpdateSnapshot();
}

void NodeHealth::Learn(const std::string& nic, const std::string& mac, const std::string& pci, uint64_t port_guid) {
  const auto found = nics_.find(nic);
  if (found == nics_.end()) return;
  if (!mac.empty()) found->second.identity.mac = mac;
  if (!pci.empty()) found->second.identity.pci = pci;
  if (port_guid != 0) found->second.identity.port_guid = port_guid;
  UpdateSnapshot();
}

bool NodeHealth::initializing() const {
  return std::any_of(nics_.begin(), nics_.end(), [](const auto& entry) { return !entry.second.machine.link_known(); });
}

OperatorSettings NodeHealth::settings() const {
  OperatorSettings settings;
  for (const auto& [name, nic] : nics_) {
    const OperatorSetting setting = {nic.machine.drained(),     nic.machine.drill_failed(), nic.weight_permille,
                                     nic.machine.drill_until(), nic.drained_jobs,           nic.drained_now};
    if (setting != OperatorSetting{}) settings.emplace(name, setting);
  }
  return settings;
}

std::set<std::string> NodeHealth::cabled() const {
  std::set<std::string> cabled;
  for (const auto& [name, nic] : nics_)
    if (nic.cabled) cabled.insert(name);
  return cabled;
}

void NodeHealth::UpdateSnapshot() {
  NodeState next;
  next.node = node_;
  for (const std::string& name : order_) {
    Nic& nic = nics_.at(name);
    if (!nic.machine.suspected()) nic.suspected_by.clear();
    NicStatus status;
    status.identity = nic.identity;
    status.state = nic.machine.state();
    status.reason = nic.machine.reason();
    status.since = nic.machine.since();
    // A configured rate is that of a shaped rail, below the kernel's; a kernel's below the configured one is a link that negotiated down.
    const uint64_t configured = nic.identity.rate_bits_per_s;
    const uint64_t kernel = nic.kernel_rate_bits_per_s;
    status.rate_bits_per_s = configured == 0 || (kernel != 0 && kernel < configured) ? kernel : configured;
    status.link_up = nic.machine.link_up();
    status.mtu = nic.mtu;
    status.drained = nic.machine.drained();
    status.drained_now = nic.drained_now;
    if (nic.drained_now && status.state == NicState::kDrained) status.reason += ", at once";
    status.drill_failed = nic.machine.drill_failed();
    status.drill_until = nic.machine.drill_until();
    status.operator_weight_permille = nic.weight_permille;
    status.drained_jobs.assign(nic.drained_jobs.begin(), nic.drained_jobs.end());
    status.share_permille = std::min(status.share_permille, static_cast<uint16_t>(SlowShare(nic)));
    status.flaps_total = nic.machine.flaps_total();
    next.nics.push_back(std::move(status));
  }
  next.status = StatusFor(next.nics, initializing());
  if (revision_ != 0 && next == snapshot_) return;
  snapshot_ = std::move(next);
  ++revision_;
}

}  // namespace r2cc::health
