#include "daemon/reload/config_change.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/config/config_shown.h"

namespace r2cc::daemon {
namespace {

// A line stays a line in a large cluster.
constexpr size_t kNamesShown = 8;

std::string Names(const std::vector<std::string>& names) {
  const size_t shown = std::min(names.size(), kNamesShown);
  return absl::StrCat(absl::StrJoin(names.begin(), names.begin() + static_cast<ptrdiff_t>(shown), " "),
                      names.size() > shown ? absl::StrCat(" and ", names.size() - shown, " more") : "");
}

std::string DescribePeers(const std::vector<PeerSpec>& before, const std::vector<PeerSpec>& after) {
  std::map<std::string, std::string> old, fresh;
  for (const PeerSpec& peer : before) old[peer.node] = peer.address;
  for (const PeerSpec& peer : after) fresh[peer.node] = peer.address;
  std::vector<std::string> added, removed, moved;
  for (const auto& [node, address] : fresh) {
    if (!old.contains(node))
      added.push_back(node);
    else if (old[node] != address)
      moved.push_back(node);
  }
  for (const auto& [node, address] : old)
    if (!fresh.contains(node)) removed.push_back(node);
  std::vector<std::string> parts;
  if (!added.empty()) parts.push_back(absl::StrCat("new ", Names(added)));
  if (!removed.empty()) parts.push_back(absl::StrCat("without ", Names(removed)));
  if (!moved.empty()) parts.push_back(absl::StrCat("another address for ", Names(moved)));
  return parts.empty() ? "" : absl::StrCat("peers: ", absl::StrJoin(parts, ", "));
}

std::string DescribeNics(const std::vector<std::string>& added, const std::vector<std::string>& removed,
                         const std::vector<std::string>& changed) {
  std::vector<std::string> parts;
  if (!added.empty()) parts.push_back(absl::StrCat("new ", Names(added)));
  if (!removed.empty()) parts.push_back(absl::StrCat("without ", Names(removed)));
  if (!changed.empty()) parts.push_back(absl::StrCat("another interface or address for ", Names(changed)));
  return parts.empty() ? "" : absl::StrCat("nics: ", absl::StrJoin(parts, ", "));
}

const NicSpec* Find(const std::vector<NicSpec>& nics, const std::string& name) {
  const auto found = std::find_if(nics.begin(), nics.end(), [&](const NicSpec& one) { return one.name == name; });
  return found == nics.end() ? nullptr : &*found;
}

// Which ends of cables belong together is looked at once.
bool HasCable(const NicSpec* nic) { return nic != nullptr && !nic->cable_node.empty(); }

void ChangeNics(const Config& in_force, const Config& next, ConfigChange* change) {
  // A file that is empty because it is being written must not take a node's NICs from it.
  if (next.nics_by_default && !in_force.nics_by_default) {
    change->needs_restart.emplace_back("nics: the file names none");
    return;
  }
  std::vector<std::string> added, removed, changed, rates, waiting;
  std::vector<NicSpec> nics;
  for (const NicSpec& nic : next.nics) {
    const NicSpec* const old = Find(in_force.nics, nic.name);
    const bool same = old != nullptr && SameNic(*old, nic);
    if (!same && (HasCable(&nic) || HasCable(old))) {
      waiting.push_back(nic.name);
      if (old != nullptr) nics.push_back(*old);
      continue;
    }
    nics.push_back(nic);
    if (old == nullptr)
      added.push_back(nic.name);
    else if (!same)
      changed.push_back(nic.name);
    else if (old->rate_bits_per_s != nic.rate_bits_per_s)
      rates.push_back(nic.name);
  }
  for (const NicSpec& nic : in_force.nics) {
    if (Find(next.nics, nic.name) != nullptr) continue;
    if (HasCable(&nic)) {
      waiting.push_back(nic.name);
      nics.push_back(nic);
    } else {
      removed.push_back(nic.name);
    }
  }
  change->config.nics = std::move(nics);
  change->config.nics_by_default = next.nics_by_default;
  if (!rates.empty()) change->applied.push_back(absl::StrCat("rates of NICs: ", Names(rates)));
  if (const std::string text = DescribeNics(added, removed, changed); !text.empty()) change->applied.push_back(text);
  if (!waiting.empty()) change->needs_restart.push_back(absl::StrCat("nics with cables: ", Names(waiting)));
}

auto Key(const GrantSpec& grant) {
  return std::tie(grant.view, grant.operate, grant.drill, grant.users, grant.groups, grant.everyone, grant.on_nodes, grant.operators);
}

bool SameGrants(const std::vector<GrantSpec>& a, const std::vector<GrantSpec>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const GrantSpec& x, const GrantSpec& y) { return Key(x) == Key(y); });
}

// The daemon whose store is used is called where it was at the start.
std::string StoreAddress(const Config& config) {
  for (const PeerSpec& peer : config.peers)
    if (peer.node == config.store_node) return peer.address;
  return "";
}

// `next`, in which the daemon whose store is in use is where it was.
std::vector<PeerSpec> KeepStore(const Config& in_force, std::vector<PeerSpec> next) {
  const auto is_store = [&](const PeerSpec& peer) { return peer.node == in_force.store_node; };
  const auto store = std::find_if(in_force.peers.begin(), in_force.peers.end(), is_store);
  if (store == in_force.peers.end()) return next;
  std::erase_if(next, is_store);
  next.push_back(*store);
  return next;
}

}  // namespace

bool SameNic(const NicSpec& a, const NicSpec& b) {
  // One that is named by its network has what address it has now.
  const bool same_address = a.network.has_value() ? a.network == b.network : !b.network.has_value() && a.address == b.address;
  return a.name == b.name && a.interface == b.interface && same_address && a.port_guid == b.port_guid && a.cable_node == b.cable_node &&
         a.cable_nic == b.cable_nic;
}

ConfigChange Change(const Config& in_force, const Config& next) {
  ConfigChange change;
  change.config = in_force;
  Config& config = change.config;
  const auto waits = [&](bool differs, const char* what) {
    if (differs) change.needs_restart.emplace_back(what);
  };
  waits(in_force.node != next.node, "node");
  waits(in_force.listen != next.listen, "listen");
  waits(in_force.store_node != next.store_node || in_force.store_prefix != next.store_prefix || in_force.etcd != next.etcd ||
            StoreAddress(in_force) != StoreAddress(next),
        "store");
  waits(in_force.tls != next.tls, "tls: the names of the files; what is in them is followed without");
  waits(in_force.insecure != next.insecure, "insecure");
  waits(in_force.http != next.http, "http");
  waits(in_force.rdma != next.rdma, "rdma");
  waits(in_force.nice != next.nice, "nice");
  waits(in_force.realtime_priority != next.realtime_priority, "realtime_priority");
  ChangeNics(in_force, next, &change);

  // Peers of a daemon that cannot prove who they are would be called in the clear.
  const bool may_have_peers = in_force.tls.has_value() || in_force.insecure;
  const std::vector<PeerSpec> next_peers = KeepStore(in_force, next.peers);
  if (const std::string peers = DescribePeers(in_force.peers, next_peers); !peers.empty()) {
    if (may_have_peers || next_peers.empty()) {
      config.peers = next_peers;
      change.applied.push_back(peers);
    } else {
      change.needs_restart.push_back(absl::StrCat(peers, ": with tls or insecure"));
    }
  }
  if (!SameGrants(in_force.grants, next.grants)) {
    config.grants = next.grants;
    change.applied.emplace_back("grants");
  }
  if (in_force.drills != next.drills) {
    config.drills = next.drills;
    change.applied.emplace_back(next.drills ? "drills: allowed" : "drills: not allowed any more");
  }
  if (in_force.log_level.value_or(Severity::kInfo) != next.log_level.value_or(Severity::kInfo)) {
    config.log_level = next.log_level;
    change.applied.push_back(absl::StrCat("log_level: ", SeverityName(next.log_level.value_or(Severity::kInfo))));
  }
  if (in_force.attach != next.attach) {
    config.attach = next.attach;
    change.applied.emplace_back("attach: the users whose jobs may attach");
  }
  const auto limits = [](const Config& one) { return std::tie(one.nics_per_node, one.nodes_max, one.forget_after); };
  if (limits(in_force) != limits(next)) {
    config.nics_per_node = next.nics_per_node;
    config.nodes_max = next.nodes_max;
    config.forget_after = next.forget_after;
    change.applied.emplace_back("limits");
  }
  config.parts = next.parts;
  return change;
}

}  // namespace r2cc::daemon
