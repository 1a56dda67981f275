#include "daemon/core/roles.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace r2cc::daemon {
namespace {

constexpr uint8_t Bit(Role role) { return static_cast<uint8_t>(role); }
constexpr uint8_t kAsk = Bit(Role::kView);
constexpr uint8_t kSteer = kAsk | Bit(Role::kOperate);
constexpr uint8_t kAll = kSteer | Bit(Role::kDrill);

constexpr Role kRoles[] = {Role::kView, Role::kOperate, Role::kDrill};

bool Names(const std::set<std::string>& names, const std::string& name) { return names.contains("*") || names.contains(name); }

bool Covers(const Grant& grant, const Caller& caller) {
  switch (caller.kind) {
    case Caller::Kind::kNobody: return false;
    case Caller::Kind::kNode:
      return false;  // a daemon makes no requests of its own here: it forwards those of people
    // Another node's claim that an operator has asked it is no proof: an operator shows the certificate to the node that acts.
    case Caller::Kind::kOperator: return (!caller.forwarded() || Names(grant.on_nodes, caller.via)) && Names(grant.operators, caller.name);
    case Caller::Kind::kLocal: break;
  }
  if (caller.forwarded() ? !Names(grant.on_nodes, caller.via) : !grant.on_nodes.empty()) return false;
  return grant.everyone || grant.uids.contains(caller.uid) || grant.gids.contains(caller.gid) ||
         std::any_of(caller.groups.begin(), caller.groups.end(), [&](uint32_t group) { return grant.gids.contains(group); });
}

// The advice for a caller without `role`.
std::string WayOut(const Caller& caller, Role role, const std::string& node) {
  if (caller.forwarded())
    return absl::StrCat("ask on ", node, " itself, use an operator's certificate (--server, --certs), or set grants with on_nodes: \"",
                        caller.via, "\" in its configuration");
  if (caller.kind == Caller::Kind::kNode) return "use an operator's certificate (--certs)";
  switch (role) {
    case Role::kView: return "by default every user of the node has it, and grants in its configuration replace that";
    case Role::kOperate: return "by default root and group r2cc have it; set grants in its configuration";
    case Role::kDrill: return "by default root has it; set grants in its configuration";
  }
  return "set grants in its configuration";
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
  if (caller.contained || (role == Role::kDrill && !drills_)) return false;
  return std::any_of(grants_.begin(), grants_.end(),
                     [&](const Grant& grant) { return (grant.roles & Bit(role)) != 0 && Covers(grant, caller); });
}

absl::Status RolePolicy::Check(const Caller& caller, Role role, const std::string& node) const {
  if (Has(caller, role)) return absl::OkStatus();
  if (caller.contained)
    return absl::PermissionDeniedError(absl::StrCat(
        Describe(caller), " has no role on node ", node, ": ",
        caller.pid <= 0 ? "r2ccd runs in a container and cannot see processes outside of it: run the command there (kubectl exec)"
                        : "ask outside of containers; a /proc with hidepid has to show r2ccd's group the others (gid=)",
        ", or with an operator's certificate (--server)"));
  if (role == Role::kDrill && !drills_)
    return absl::PermissionDeniedError(absl::StrCat("drills are off on node ", node, ": set drills { allow: true } in its configuration"));
  return absl::PermissionDeniedError(
      absl::StrCat(Describe(caller), " does not have the role ", Name(role), " on node ", node, ": ", WayOut(caller, role, node)));
}

Grant OwnersGrant(uint32_t daemon_uid) { return {.roles = kAll, .uids = {0, daemon_uid}}; }

std::vector<Grant> DefaultGrants(int64_t operators_gid, bool insecure) {
  std::vector<Grant> grants = {
      OwnersGrant(0),
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

std::vector<std::string> LostByGrants(const std::vector<Grant>& grants, int64_t operators_gid, bool insecure) {
  // Nobody's: a user, a group and a name that no grant gives.
  constexpr uint32_t kNobody = UINT32_MAX;
  const std::string nameless(1, '\0');
  const auto user = [&](uint32_t uid, int64_t gid, bool elsewhere) {
    return Caller{
        .kind = Caller::Kind::kLocal, .uid = uid, .gid = gid >= 0 ? static_cast<uint32_t>(gid) : kNobody, .via = elsewhere ? nameless : ""};
  };
  const Caller other_user = user(kNobody, -1, false);
  const Caller other_user_elsewhere = user(kNobody, -1, true);
  const Caller any_operator{.kind = Caller::Kind::kOperator, .name = nameless};
  const RolePolicy before(DefaultGrants(operators_gid, insecure), /*drills=*/true);
  const RolePolicy now(grants, /*drills=*/true);
  struct Kind {
    const char* who;
    const char* field;  // of the grant that gives it back
    Caller caller;
    Caller common;  // whom it has nothing to lose beyond, unless the defaults gave it more
  };
  const Kind kinds[] = {
      {"members of group r2cc", "groups: \"r2cc\"", user(kNobody, operators_gid, false), other_user},
      {"other users of this node", "everyone: true", other_user, {}},
      {"operators with a certificate", "operators: \"*\"", any_operator, {}},
      {"root of other nodes", "users: \"0\" on_nodes: \"*\"", user(0, -1, true), other_user_elsewhere},
      {"members of group r2cc on other nodes", "groups: \"r2cc\" on_nodes: \"*\"", user(kNobody, operators_gid, true),
       other_user_elsewhere},
      {"other users of other nodes", "everyone: true on_nodes: \"*\"", other_user_elsewhere, {}},
  };
  std::vector<std::string> lines;
  for (const Kind& kind : kinds) {
    std::vector<std::string> had;
    std::vector<std::string> common;
    std::vector<std::string> lost;
    for (const Role role : kRoles) {
      if (!before.Has(kind.caller, role)) continue;
      had.push_back(absl::StrCat("roles: ", Name(role)));
      if (before.Has(kind.common, role)) common.push_back(had.back());
      if (!now.Has(kind.caller, role)) lost.push_back(Name(role));
    }
    if (lost.empty() || had == common) continue;
    lines.push_back(absl::StrCat("grants replace the defaults: ", kind.who, " lose ", absl::StrJoin(lost, " and "),
                                 "; to keep it: grants { ", absl::StrJoin(had, " "), " ", kind.field, " }"));
  }
  return lines;
}

}  // namespace r2cc::daemon
