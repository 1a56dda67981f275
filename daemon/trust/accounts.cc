#include "daemon/trust/accounts.h"

#include <grp.h>
#include <pwd.h>

#include <optional>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace r2cc::daemon {
namespace {

// Before there are threads: the answers live in memory of the C library.
std::optional<uint32_t> UserNumber(const std::string& name) {
  if (uint32_t number = 0; absl::SimpleAtoi(name, &number)) return number;
  const passwd* user = getpwnam(name.c_str());
  return user == nullptr ? std::nullopt : std::optional<uint32_t>(user->pw_uid);
}

std::optional<uint32_t> GroupNumber(const std::string& name) {
  if (uint32_t number = 0; absl::SimpleAtoi(name, &number)) return number;
  const group* found = getgrnam(name.c_str());
  return found == nullptr ? std::nullopt : std::optional<uint32_t>(found->gr_gid);
}

absl::Status Unknown(const Config& config, const GrantSpec& spec, const char* what, const std::string& name) {
  return absl::NotFoundError(
      absl::StrCat(config.parts.Place(spec.line), ": grants: this machine has no ", what, " '", name, "'; make it, or write its number"));
}

}  // namespace

absl::StatusOr<std::vector<Grant>> ResolveGrants(const Config& config) {
  if (config.grants.empty()) {
    const auto operators = GroupNumber(kOperatorsGroup);
    return DefaultGrants(operators.has_value() ? static_cast<int64_t>(*operators) : -1, config.insecure);
  }
  std::vector<Grant> grants;
  for (const GrantSpec& spec : config.grants) {
    Grant& grant = grants.emplace_back();
    for (const auto& [has, role] : {std::pair(spec.view, Role::kView), {spec.operate, Role::kOperate}, {spec.drill, Role::kDrill}})
      if (has) grant.roles |= static_cast<uint8_t>(role);
    for (const std::string& name : spec.users) {
      const auto number = UserNumber(name);
      if (!number.has_value()) return Unknown(config, spec, "user", name);
      grant.uids.insert(*number);
    }
    for (const std::string& name : spec.groups) {
      const auto number = GroupNumber(name);
      if (!number.has_value()) return Unknown(config, spec, "group", name);
      grant.gids.insert(*number);
    }
    grant.everyone = spec.everyone;
    grant.on_nodes = {spec.on_nodes.begin(), spec.on_nodes.end()};
    grant.operators = {spec.operators.begin(), spec.operators.end()};
  }
  return grants;
}

}  // namespace r2cc::daemon
