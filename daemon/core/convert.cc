#include "daemon/core/convert.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/names.h"

namespace r2cc::daemon {
namespace {

constexpr size_t kTextBytesMax = 256;
// Beyond this a rate is a mistake: a petabit per second.
constexpr uint64_t kRateMax = 1'000'000'000'000'000;

// Text of another daemon, for our logs and tables.
std::string Clean(const std::string& text) { return CleanText(text.data(), std::min(text.size(), kTextBytesMax)); }

absl::StatusOr<health::NicState> FromProto(v1::NicState state) {
  switch (state) {
    case v1::HEALTHY: return health::NicState::kHealthy;
    case v1::DEGRADED: return health::NicState::kDegraded;
    case v1::SUSPECT: return health::NicState::kSuspect;
    case v1::FAILED: return health::NicState::kFailed;
    case v1::PROVING: return health::NicState::kProving;
    case v1::DRAINED: return health::NicState::kDrained;
    case v1::UNCABLED: return health::NicState::kUncabled;
    default: return absl::InvalidArgumentError(absl::StrCat("NIC state ", static_cast<int>(state), " is unknown: is that daemon newer?"));
  }
}

health::NodeStatus FromProto(v1::NodeStatus status) {
  switch (status) {
    case v1::NODE_HEALTHY: return health::NodeStatus::kHealthy;
    case v1::NODE_DEGRADED: return health::NodeStatus::kDegraded;
    case v1::NODE_UNHEALTHY: return health::NodeStatus::kUnhealthy;
    default: return health::NodeStatus::kInitializing;
  }
}

absl::Status CheckDrainedJobs(const v1::NicView& nic) {
  if (static_cast<size_t>(nic.drained_jobs_size()) > health::kDrainedJobsMax)
    return absl::InvalidArgumentError(
        absl::StrCat("NIC ", nic.name(), ": drained for ", nic.drained_jobs_size(), " jobs, more than ", health::kDrainedJobsMax));
  for (const std::string& job : nic.drained_jobs())
    if (!IsJobName(job)) return absl::InvalidArgumentError(absl::StrCat("NIC ", nic.name(), ": '", Clean(job), "' is not a job name"));
  return absl::OkStatus();
}

}  // namespace

plan::PlannedState ToPlan(health::NicState state) {
  switch (state) {
    case health::NicState::kHealthy: return plan::PlannedState::kHealthy;
    case health::NicState::kDegraded: return plan::PlannedState::kDegraded;
    case health::NicState::kSuspect: return plan::PlannedState::kSuspect;
    case health::NicState::kFailed: return plan::PlannedState::kFailed;
    case health::NicState::kProving: return plan::PlannedState::kProving;
    case health::NicState::kDrained: return plan::PlannedState::kDrained;
    case health::NicState::kUncabled: return plan::PlannedState::kUncabled;
  }
  return plan::PlannedState::kFailed;
}

v1::NicState ToProto(plan::PlannedState state) {
  switch (state) {
    case plan::PlannedState::kHealthy: return v1::HEALTHY;
    case plan::PlannedState::kDegraded: return v1::DEGRADED;
    case plan::PlannedState::kSuspect: return v1::SUSPECT;
    case plan::PlannedState::kFailed: return v1::FAILED;
    case plan::PlannedState::kProving: return v1::PROVING;
    case plan::PlannedState::kDrained:
    case plan::PlannedState::kDrainedNow: return v1::DRAINED;
    case plan::PlannedState::kUncabled: return v1::UNCABLED;
  }
  return v1::NIC_STATE_UNSPECIFIED;
}

v1::Epoch ToProto(const Epoch& epoch) {
  v1::Epoch out;
  out.set_incarnation(epoch.incarnation);
  out.set_counter(epoch.counter);
  return out;
}

Epoch FromProto(const v1::Epoch& epoch) { return {epoch.incarnation(), epoch.counter()}; }

v1::NicState ToProto(health::NicState state) { return ToProto(ToPlan(state)); }

v1::NodeStatus ToProto(health::NodeStatus status) {
  switch (status) {
    case health::NodeStatus::kHealthy: return v1::NODE_HEALTHY;
    case health::NodeStatus::kDegraded: return v1::NODE_DEGRADED;
    case health::NodeStatus::kUnhealthy: return v1::NODE_UNHEALTHY;
    case health::NodeStatus::kInitializing: return v1::NODE_INITIALIZING;
    case health::NodeStatus::kUnreachable: return v1::NODE_UNREACHABLE;
  }
  return v1::NODE_WORD_UNSPECIFIED;
}

v1::NicView ToProto(const health::NicStatus& nic, const Moment& now) {
  v1::NicView out;
  out.set_name(nic.identity.name);
  out.set_address(nic.identity.address);
  out.set_mac(nic.identity.mac);
  out.set_pci(nic.identity.pci);
  out.set_port_guid(nic.identity.port_guid);
  out.set_state(ToProto(nic.state));
  out.set_reason(nic.reason);
  out.set_since_ns(now.ToRealtime(nic.since));
  out.set_rate_bits_per_s(nic.rate_bits_per_s);
  out.set_link_up(nic.link_up);
  out.set_drained(nic.drained);
  out.set_drained_now(nic.drained_now);
  out.set_operator_weight_permille(nic.operator_weight_permille);
  out.set_drill_failed(nic.drill_failed);
  if (nic.drill_until != 0) out.set_drill_ends_ns(now.ToRealtime(nic.drill_until));
  out.set_flaps_total(nic.flaps_total);
  if (nic.share_permille < health::kFullWeightPermille) out.set_share_permille(nic.share_permille);
  out.set_probe_port(nic.probe_port);
  out.set_port_dead(nic.port_dead);
  out.set_probe_trouble(nic.probe_trouble);
  out.set_probe_packet_max(nic.probe_packet_max);
  for (const std::string& job : nic.drained_jobs) out.add_drained_jobs(job);
  return out;
}

v1::NodeView ToProto(const health::NodeState& state, health::NodeStatus status, const Moment& now) {
  v1::NodeView out;
  out.set_node(state.node);
  *out.mutable_epoch() = ToProto(state.epoch);
  out.set_word(ToProto(status));
  for (const auto& nic : state.nics) *out.add_nics() = ToProto(nic, now);
  out.set_probe_nonce(state.probe_nonce);
  if (state.probe_nonce != 0) out.set_probe_key(state.probe_key.data(), state.probe_key.size());
  for (const auto& pair : state.pairs) {
    auto* added = out.add_pairs();
    added->set_nic(pair.nic);
    added->set_peer_node(pair.peer.node);
    added->set_peer_nic(pair.peer.nic);
    added->set_silent(pair.silent);
    added->set_broken(pair.broken);
    added->set_large_lost(pair.large == health::PairVerdict::kSilent);
    added->set_large_passes(pair.large == health::PairVerdict::kAnswering);
  }
  for (const auto& end : state.rdma_ends) {
    auto* added = out.add_rdma_ends();
    added->set_nic(end.nic);
    added->set_peer_node(end.peer.node);
    added->set_peer_nic(end.peer.nic);
    added->set_end(end.end);
  }
  return out;
}

absl::StatusOr<health::NodeState> FromProto(const v1::NodeView& view, const Moment& now, size_t nics_max) {
  if (!IsNodeName(view.node())) return absl::InvalidArgumentError(absl::StrCat("'", Clean(view.node()), "' is not a node name"));
  if (static_cast<size_t>(view.nics_size()) > nics_max)
    return absl::InvalidArgumentError(absl::StrCat(view.nics_size(), " NICs, more than ", nics_max, " (limits { nics_per_node })"));
  if (view.epoch().incarnation() == 0) return absl::InvalidArgumentError("it has no boot id of its daemon");
  health::NodeState state;
  state.node = view.node();
  state.epoch = FromProto(view.epoch());
  state.status = FromProto(view.word());
  std::set<std::string> names;
  for (const auto& nic : view.nics()) {
    if (!IsNicName(nic.name())) return absl::InvalidArgumentError(absl::StrCat("'", Clean(nic.name()), "' is not a NIC name"));
    if (!names.insert(nic.name()).second) return absl::InvalidArgumentError(absl::StrCat("NIC ", nic.name(), " is listed twice"));
    if (nic.operator_weight_permille() > health::kFullWeightPermille)
      return absl::InvalidArgumentError(
          absl::StrCat("NIC ", nic.name(), ": weight ", nic.operator_weight_permille(), " is over ", health::kFullWeightPermille));
    if (nic.share_permille() > health::kFullWeightPermille)
      return absl::InvalidArgumentError(
          absl::StrCat("NIC ", nic.name(), ": share ", nic.share_permille(), " is over ", health::kFullWeightPermille));
    if (const absl::Status jobs = CheckDrainedJobs(nic); !jobs.ok()) return jobs;
    const auto nic_state = FromProto(nic.state());
    if (!nic_state.ok()) return absl::InvalidArgumentError(absl::StrCat("NIC ", nic.name(), ": ", nic_state.status().message()));
    health::NicStatus status;
    status.identity.name = nic.name();
    status.identity.address = Clean(nic.address());
    status.identity.mac = Clean(nic.mac());
    status.identity.pci = Clean(nic.pci());
    status.identity.port_guid = nic.port_guid();
    status.state = *nic_state;
    status.reason = Clean(nic.reason());
    status.since = now.ToMonotonic(std::clamp<int64_t>(nic.since_ns(), 0, now.realtime_ns));
    status.rate_bits_per_s = std::min(nic.rate_bits_per_s(), kRateMax);
    status.link_up = nic.link_up();
    status.drained = nic.drained();
    status.drained_now = nic.drained_now();
    status.drill_failed = nic.drill_failed();
    if (nic.drill_ends_ns() != 0)
      status.drill_until = now.ToMonotonic(std::clamp<int64_t>(nic.drill_ends_ns(), now.realtime_ns, now.realtime_ns + health::kDrillMax));
    status.operator_weight_permille = static_cast<uint16_t>(nic.operator_weight_permille());
    if (nic.has_share_permille()) status.share_permille = static_cast<uint16_t>(nic.share_permille());
    status.flaps_total = nic.flaps_total();
    if (nic.probe_port() > 65535)
      return absl::InvalidArgumentError(absl::StrCat("NIC ", nic.name(), ": ", nic.probe_port(), " is not a port"));
    status.probe_port = static_cast<uint16_t>(nic.probe_port());
    status.port_dead = nic.port_dead();
    status.probe_trouble = Clean(nic.probe_trouble());
    status.probe_packet_max = nic.probe_packet_max();
    const std::set<std::string> jobs(nic.drained_jobs().begin(), nic.drained_jobs().end());
    status.drained_jobs.assign(jobs.begin(), jobs.end());
    state.nics.push_back(std::move(status));
  }
  if (static_cast<size_t>(view.pairs_size()) > health::kPairReportsMax)
    return absl::InvalidArgumentError(absl::StrCat(view.pairs_size(), " rail pairs, more than ", health::kPairReportsMax));
  state.probe_nonce = view.probe_nonce();
  if (!view.probe_key().empty()) {
    if (view.probe_key().size() != state.probe_key.size())
      return absl::InvalidArgumentError(absl::StrCat("a probe key of ", view.probe_key().size(), " bytes"));
    std::copy(view.probe_key().begin(), view.probe_key().end(), state.probe_key.begin());
  }
  for (const auto& pair : view.pairs()) {
    if (!names.contains(pair.nic()) || !IsNodeName(pair.peer_node()) || !IsNicName(pair.peer_nic()) || pair.peer_node() == view.node())
      return absl::InvalidArgumentError(absl::StrCat("a rail pair of '", Clean(pair.nic()), "' with '", Clean(pair.peer_node()), "/",
                                                     Clean(pair.peer_nic()), "' is none of this node"));
    health::PairVerdict large = pair.large_passes() ? health::PairVerdict::kAnswering : health::PairVerdict::kUnknown;
    if (pair.large_lost()) large = health::PairVerdict::kSilent;
    state.pairs.push_back({pair.nic(), {pair.peer_node(), pair.peer_nic()}, pair.silent(), pair.broken(), large});
  }
  state.pairs.ShrinkToFit();
  if (static_cast<size_t>(view.rdma_ends_size()) > health::kRdmaEndsMax)
    return absl::InvalidArgumentError(absl::StrCat(view.rdma_ends_size(), " RDMA ends, more than ", health::kRdmaEndsMax));
  for (const auto& end : view.rdma_ends()) {
    if (!names.contains(end.nic()) || !IsNodeName(end.peer_node()) || !IsNicName(end.peer_nic()) || end.peer_node() == view.node())
      return absl::InvalidArgumentError(absl::StrCat("an RDMA end of '", Clean(end.nic()), "' towards '", Clean(end.peer_node()), "/",
                                                     Clean(end.peer_nic()), "' is none of this node"));
    if (end.end().size() > health::kRdmaEndBytesMax)
      return absl::InvalidArgumentError(absl::StrCat("NIC ", end.nic(), ": an RDMA end of ", end.end().size(), " bytes"));
    state.rdma_ends.push_back({end.nic(), {end.peer_node(), end.peer_nic()}, end.end()});
  }
  return state;
}

}  // namespace r2cc::daemon
