#include "daemon/trust/roles.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace r2cc::daemon {
namespace {

constexpr uint8_t Bit(Role role) { return static_cast<uint8_t>(role); }
constexpr uint8_t kAsk = Bit(Role::kView);
constexpr uint8_t kSteer = kAsk | Bit(Role::kOperate);
constexpr uint8_t kAll = kSteer | Bit(Role::kDrill);

bool Names(const std::set<std::string>& names, const std::string& name) { return names.contains("*") || names.contains(name); }

bool Covers(const Grant& grant, const Caller& caller) {
  switch (caller.kind) {
    case Caller::Kind::kNobody: return false;
    case Caller::Kind::kNode:
      return false;  // a daemon has no words of its own to say here: it forwards those of people
    // Another node's word that an operator has asked it is no proof: whoever has a certificate shows it where the request is done.
    case Caller::Kind::kOperator: return (!caller.forwarded() || Names(grant.on_nodes, caller.via)) && Names(grant.operators, caller.name);
    case Caller::Kind::kLocal: break;
  }
  if (caller.forwarded() ? !Names(grant.on_nodes, caller.via) : !grant.on_nodes.empty()) return false;
  return grant.everyone || grant.uids.contains(caller.uid) || grant.gids.contains(caller.gid) ||
         std::any_of(caller.groups.begin(), caller.groups.end(), [&](uint32_t group) { return grant.gids.contains(group); });
}

}  // namespace

std::string Name(Role role) {
  switch (role) {
    case Role::kView: return "VIEW";
    case Role::kOperate: return "OPERATE";
    case Role::kDrill: return "DRILL";
  }
  return "?";
}

bool RolePolicy::Has(const Caller& caller, Role role) const {
  if (role == Role::kDrill && !drills_) return false;
  return std::any_of(grants_.begin(), grants_.end(),
                     [&](const Grant& grant) { return (grant.roles & Bit(role)) != 0 && Covers(grant, caller); });
}

absl::Status RolePolicy::Check(const Caller& caller, Role role, const std::string& node) const {
  if (Has(caller, role)) return absl::OkStatus();
  if (role == Role::kDrill && !drills_)
    return absl::PermissionDeniedError(absl::StrCat("drills are off on node ", node, ": set drills { allow: true } in its configuration"));
  const std::string way_out = caller.forwarded()       ? absl::StrCat("ask on ", node,
                                                                      " itself, use an operator's certificate (--server, --certs), or set "
                                                                            "grants with on_nodes: \"",
                                                                      caller.via, "\" in its configuration")
                              : role == Role::kOperate ? "by default root and group r2cc have it; set grants in its configuration"
                                                       : "by default root has it; set grants in its configuration";
  return absl::PermissionDeniedError(
      absl::StrCat(Describe(caller), " does not have the role ", Name(role), " on node ", node, ": ", way_out));
}

std::vector<Grant> DefaultGrants(int64_t operators_gid, bool insecure) {
  std::vector<Grant> grants = {
      {.roles = kAll, .uids = {0}},
      {.roles = kAsk, .everyone = true},
      {.roles = kAsk, .everyone = true, .on_nodes = {"*"}, .operators = {"*"}},
      {.roles = kSteer, .on_nodes = {}, .operators = {"*"}},
  };
  if (operators_gid >= 0) grants.push_back({.roles = kSteer, .gids = {static_cast<uint32_t>(operators_gid)}});
  if (!insecure) return grants;
  grants.push_back({.roles = kAll, .uids = {0}, .on_nodes = {"*"}});
  if (operators_gid >= 0) grants.push_back({.roles = kSteer, .gids = {static_cast<uint32_t>(operators_gid)}, .on_nodes = {"*"}});
  return grants;
}

}  // namespace r2cc::daemon
