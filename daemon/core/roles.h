// Decides which caller may do what on this node. Pure.
#ifndef R2CC_DAEMON_CORE_ROLES_H_
#define R2CC_DAEMON_CORE_ROLES_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "daemon/core/caller.h"

namespace r2cc::daemon {

enum class Role : uint8_t {
  kView = 1,     // ask
  kOperate = 2,  // drain, undrain, weight
  kDrill = 4,    // fail-nic, restore-nic
};
std::string Name(Role role);

// Gives `roles` to the callers in any of the sets.
struct Grant {
  uint8_t roles = 0;  // of Role
  std::set<uint32_t> uids;
  std::set<uint32_t> gids;
  bool everyone = false;  // every user
  // The users above are those of these nodes, as their daemons identify them; empty: of this node. "*" is every node.
  std::set<std::string> on_nodes;
  std::set<std::string> operators;  // by the certificate's name; "*" is every one
};

class RolePolicy {
 public:
  // `drills`: false refuses Role::kDrill to everybody.
  RolePolicy(std::vector<Grant> grants, bool drills) : grants_(std::move(grants)), drills_(drills) {}

  bool Has(const Caller& caller, Role role) const;
  // OK, or PERMISSION_DENIED with the caller, the request and the way out. `node`: this one.
  absl::Status Check(const Caller& caller, Role role, const std::string& node) const;

 private:
  std::vector<Grant> grants_;
  bool drills_;
};

// Root of this machine and the daemon's own user have all roles under every configuration: they can read its keys and end it
// anyway.
Grant OwnersGrant(uint32_t daemon_uid);

// The roles without `grants`: root has all; group `operators_gid` (if there is one: not negative) VIEW and OPERATE; every other user VIEW;
// every operator with a certificate VIEW and OPERATE. Users of other nodes have VIEW; if nothing proves the identity of a node (`insecure`)
// they have what they have on their own node.
std::vector<Grant> DefaultGrants(int64_t operators_gid, bool insecure);

// The callers that have fewer roles by `grants` than by the defaults, which they replace: a line each, with the grant that restores it.
std::vector<std::string> LostByGrants(const std::vector<Grant>& grants, int64_t operators_gid, bool insecure);

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_CORE_ROLES_H_
