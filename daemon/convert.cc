#include "daemon/convert.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/names.h"

namespace r2cc::daemon {
namespace {

constexpr size_t kTextBytesMax = 256;
// Beyond this a rate is a mistake: a petabit per second.
constexpr uint64_t kRateMax = 1'000'000'000'000'000;
constexpr int kChangesShown = 4;

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

health::NodeStatus FromProto(v1::NodeWord status) {
  switch (status) {
    case v1::NODE_HEALTHY: return health::NodeStatus::kHealthy;
    case v1::NODE_DEGRADED: return health::NodeStatus::kDegraded;
    case v1::NODE_UNHEALTHY: return health::NodeStatus::kUnhealthy;
    default: return health::NodeStatus::kInitializing;
  }
}

plan::NicState ToPlan(health::NicState state) {
  switch (state) {
    case health::NicState::kHealthy: return plan::NicState::kHealthy;
    case health::NicState::kDegraded: return plan::NicState::kDegraded;
    case health::NicState::kSuspect: return plan::NicState::kSuspect;
    case health::NicState::kFailed: return plan::NicState::kFailed;
    case health::NicState::kProving: return plan::NicState::kProving;
    case health::NicState::kDrained: return plan::NicState::kDrained;
    case health::NicState::kUncabled: return plan::NicState::kUncabled;
  }
  return plan::NicState::kFailed;
}

plan::NicState ToPlan(const health::NicStatus& nic) {
  return nic.state == health::NicState::kDrained && nic.drained_now ? plan::NicState::kDrainedNow : ToPlan(nic.state);
}

v1::NicState ToProto(plan::NicState state) {
  switch (state) {
    case plan::NicState::kHealthy: return v1::HEALTHY;
    case plan::NicState::kDegraded: return v1::DEGRADED;
    case plan::NicState::kSuspect: return v1::SUSPECT;
    case plan::NicState::kFailed: return v1::FAILED;
    case plan::NicState::kProving: return v1::PROVING;
    case plan::NicState::kDrained:
    case plan::NicState::kDrainedNow: return v1::DRAINED;
    case plan::NicState::kUncabled: return v1::UNCABLED;
  }
  return v1::NIC_STATE_UNSPECIFIED;
}

std::string Describe(const plan::PlannedNic& nic) {
  return absl::StrCat(v1::NicState_Name(ToProto(nic.state)), nic.state == plan::NicState::kDrainedNow ? " at once " : " ",
                      nic.weight_permille / 10.0, "%",
                      nic.drained_jobs.empty() ? "" : absl::StrCat(" drained for job ", absl::StrJoin(nic.drained_jobs, ", ")));
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

v1::Epoch ToProto(const Epoch& epoch) {
  v1::Epoch out;
  out.set_incarnation(epoch.incarnation);
  out.set_counter(epoch.counter);
  return out;
}

Epoch FromProto(const v1::Epoch& epoch) { return {epoch.incarnation(), epoch.counter()}; }

v1::NicState ToProto(health::NicState state) { return ToProto(ToPlan(state)); }

v1::NodeWord ToProto(health::NodeStatus status) {
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
    auto* told = out.add_pairs();
    told->set_nic(pair.nic);
    told->set_peer_node(pair.peer.node);
    told->set_peer_nic(pair.peer.nic);
    told->set_silent(pair.silent);
    told->set_broken(pair.broken);
    told->set_large_lost(pair.large == health::PairVerdict::kSilent);
    told->set_large_passes(pair.large == health::PairVerdict::kAnswering);
  }
  for (const auto& end : state.rdma_ends) {
    auto* told = out.add_rdma_ends();
    told->set_nic(end.nic);
    told->set_peer_node(end.peer.node);
    told->set_peer_nic(end.peer.nic);
    told->set_end(end.end);
  }
  return out;
}

absl::StatusOr<health::NodeState> FromProto(const v1::NodeView& view, const Moment& now, size_t nics_max) {
  if (!IsNodeName(view.node())) return absl::InvalidArgumentError(absl::StrCat("'", Clean(view.node()), "' is not a node name"));
  if (static_cast<size_t>(view.nics_size()) > nics_max)
    return absl::InvalidArgumentError(absl::StrCat(view.nics_size(), " NICs, more than ", nics_max, " (limits { nics_per_node })"));
  if (view.epoch().incarnation() == 0) return absl::InvalidArgumentError("it does not say of which life of its daemon it is");
  health::NodeState state;
  state.node = view.node();
  state.epoch = FromProto(view.epoch());
  state.status = FromProto(view.word());
  std::set<std::string> names;
  for (const auto& nic : view.nics()) {
    if (!IsNicName(nic.name())) return absl::InvalidArgumentError(absl::StrCat("'", Clean(nic.name()), "' is not a NIC name"));
    if (!names.insert(nic.name()).second) return absl::InvalidArgumentError(absl::StrCat("NIC ", nic.name(), " stands there twice"));
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

plan::ClusterModel ToModel(const health::ClusterView& view, uint64_t since, const PageScope& scope, const std::string& own_node) {
  plan::ClusterModel model;
  std::set<std::string> ends;
  const auto take_paths = [&](const std::string& name, const health::NodeEntry& entry) {
    if (entry.state.pairs.broken() == 0) return;
    size_t taken = 0;
    for (const health::PairReport& pair : entry.state.pairs) {
      if (!pair.broken || !scope.Holds(name) || !scope.Holds(pair.peer.node)) continue;
      if (taken++ >= kBrokenPathsPerNodeMax || model.broken_paths.size() >= plan::kBrokenPathsMax) return;
      const bool first = name < pair.peer.node;
      const health::NicKey own = {name, pair.nic};
      const health::NicKey& a = first ? own : pair.peer;
      const health::NicKey& b = first ? pair.peer : own;
      model.broken_paths.push_back({a.node, a.nic, b.node, b.nic});
      ends.insert({a.node, b.node});
    }
  };
  if (const health::NodeEntry* const own = view.Find(own_node); own != nullptr) take_paths(own_node, *own);
  for (const auto& [name, entry] : view.nodes())
    if (name != own_node) take_paths(name, entry);
  for (const auto& [name, entry] : view.nodes()) {
    if (!scope.Holds(name) || (entry.revision <= since && !ends.contains(name))) continue;
    plan::NodeModel& node = model.nodes.emplace_back(plan::NodeModel{name, {}});
    for (const auto& nic : entry.state.nics)
      node.nics.push_back(
          {nic.identity.name, ToPlan(nic), nic.rate_bits_per_s, nic.operator_weight_permille, nic.share_permille, nic.drained_jobs});
  }
  return model;
}

std::vector<plan::GpuModel> ToGpuModels(const health::NodeTopology& topology, const health::NodeState& own,
                                        const std::vector<plan::PlannedNic>& planned) {
  std::vector<plan::GpuModel> gpus;
  for (size_t g = 0; g < topology.gpus.size(); ++g) {
    plan::GpuModel& gpu = gpus.emplace_back(plan::GpuModel{topology.gpus[g].pci, {}});
    for (const plan::PlannedNic& nic : planned) {
      const health::NicStatus* status = own.Find(nic.nic);
      uint8_t distance = plan::kDistanceUnknown;
      for (size_t n = 0; n < topology.nics.size() && status != nullptr && !status->identity.pci.empty(); ++n)
        if (topology.nics[n].pci == status->identity.pci) distance = static_cast<uint8_t>(topology.gpu_to_nic[g][n]);
      gpu.distances.push_back(distance);
    }
  }
  return gpus;
}

v1::Plan ToProto(const plan::Plan& plan) {
  v1::Plan out;
  *out.mutable_epoch() = ToProto(plan.epoch);
  for (const auto& nic : plan.nics) {
    auto* planned = out.add_nics();
    planned->set_node(nic.node);
    planned->set_nic(nic.nic);
    planned->set_state(ToProto(nic.state));
    planned->set_weight_permille(nic.weight_permille);
    for (const std::string& job : nic.drained_jobs) planned->add_drained_jobs(job);
  }
  for (const auto& path : plan.broken_paths) {
    auto* broken = out.add_broken_paths();
    broken->set_node(path.node);
    broken->set_nic(path.nic);
    broken->set_peer_node(path.peer_node);
    broken->set_peer_nic(path.peer_nic);
  }
  return out;
}

std::string DescribeChange(const plan::Plan& before, const plan::Plan& after) {
  using Key = std::pair<std::string_view, std::string_view>;
  absl::flat_hash_map<Key, const plan::PlannedNic*> old;
  old.reserve(before.nics.size());
  for (const auto& nic : before.nics) old[{nic.node, nic.nic}] = &nic;
  std::string text;
  int changes = 0;
  const auto add = [&](const std::string& change) {
    if (++changes <= kChangesShown) absl::StrAppend(&text, text.empty() ? "" : ", ", change);
  };
  for (const auto& nic : after.nics) {
    const auto found = old.find(Key{nic.node, nic.nic});
    if (found == old.end()) {
      add(absl::StrCat(nic.node, "/", nic.nic, " ", Describe(nic), " (new)"));
      continue;
    }
    if (!(*found->second == nic)) add(absl::StrCat(nic.node, "/", nic.nic, " ", Describe(nic), " (was ", Describe(*found->second), ")"));
    old.erase(found);
  }
  for (const auto& nic : before.nics)
    if (old.contains(Key{nic.node, nic.nic})) add(absl::StrCat(nic.node, "/", nic.nic, " gone"));
  const auto add_paths = [&](const plan::Plan& in, const plan::Plan& not_in, const char* what) {
    for (const auto& path : in.broken_paths)
      if (!std::binary_search(not_in.broken_paths.begin(), not_in.broken_paths.end(), path))
        add(absl::StrCat("path ", path.node, "/", path.nic, " to ", path.peer_node, "/", path.peer_nic, what));
  };
  add_paths(after, before, " forbidden");
  add_paths(before, after, " allowed again");
  if (changes > kChangesShown) absl::StrAppend(&text, " and ", changes - kChangesShown, " more");
  return text;
}

}  // namespace r2cc::daemon
