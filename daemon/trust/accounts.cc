#include "daemon/trust/accounts.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <optional>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace r2cc::daemon {
namespace {

// The memory that the C library needs for one entry: a group of a large directory has thousands of members.
constexpr size_t kEntryBytesMin = 4096;
constexpr size_t kEntryBytesMax = 16 << 20;

// `look_up` is one of the reentrant look-ups of the C library, as other threads run: it fills in an entry whose texts lie in the buffer.
template <typename Entry, typename LookUp>
bool Find(Entry* entry, std::vector<char>* buffer, LookUp look_up) {
  Entry* found = nullptr;
  for (size_t bytes = kEntryBytesMin; bytes <= kEntryBytesMax; bytes *= 4) {
    buffer->resize(bytes);
    if (look_up(entry, buffer->data(), bytes, &found) != ERANGE) break;
  }
  return found != nullptr;
}

std::optional<uint32_t> UserNumber(const std::string& name) {
  if (uint32_t number = 0; absl::SimpleAtoi(name, &number)) return number;
  passwd user{};
  std::vector<char> buffer;
  const bool there = Find(&user, &buffer, [&](passwd* entry, char* at, size_t bytes, passwd** found) {
    return getpwnam_r(name.c_str(), entry, at, bytes, found);
  });
  return there ? std::optional<uint32_t>(user.pw_uid) : std::nullopt;
}

std::optional<uint32_t> GroupNumber(const std::string& name) {
  if (uint32_t number = 0; absl::SimpleAtoi(name, &number)) return number;
  group found_group{};
  std::vector<char> buffer;
  const bool there = Find(&found_group, &buffer, [&](group* entry, char* at, size_t bytes, group** found) {
    return getgrnam_r(name.c_str(), entry, at, bytes, found);
  });
  return there ? std::optional<uint32_t>(found_group.gr_gid) : std::nullopt;
}

absl::Status Unknown(const Config& config, const GrantSpec& spec, const char* what, const std::string& name) {
  return absl::NotFoundError(
      absl::StrCat(config.parts.Place(spec.line), ": grants: this machine has no ", what, " '", name, "'; make it, or write its number"));
}

}  // namespace

int64_t OperatorsGid() {
  const auto operators = GroupNumber(kOperatorsGroup);
  return operators.has_value() ? static_cast<int64_t>(*operators) : -1;
}

absl::StatusOr<std::vector<Grant>> ResolveGrants(const Config& config) {
  std::vector<Grant> grants = {OwnersGrant(geteuid())};
  if (config.grants.empty()) {
    const std::vector<Grant> defaults = DefaultGrants(OperatorsGid(), config.insecure);
    grants.insert(grants.end(), defaults.begin(), defaults.end());
  }
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

std::vector<std::string> RolesLost(const Config& config, const std::vector<Grant>& grants) {
  return LostByGrants(grants, OperatorsGid(), config.insecure);
}

}  // namespace r2cc::daemon
