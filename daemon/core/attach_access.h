// Decides whose jobs may attach. Pure.
#ifndef R2CC_DAEMON_CORE_ATTACH_ACCESS_H_
#define R2CC_DAEMON_CORE_ATTACH_ACCESS_H_

#include <algorithm>
#include <cstdint>
#include <set>
#include <span>

namespace r2cc::daemon {

struct AttachAccess {
  // Both empty: everybody. Root always may.
  std::set<uint32_t> uids;
  std::set<uint32_t> gids;

  bool open() const { return uids.empty() && gids.empty(); }
  // `groups`: all that the process is in.
  bool Allows(uint32_t uid, std::span<const uint32_t> groups) const {
    return open() || uid == 0 || uids.contains(uid) ||
           std::any_of(groups.begin(), groups.end(), [&](uint32_t gid) { return gids.contains(gid); });
  }

  friend bool operator==(const AttachAccess&, const AttachAccess&) = default;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_CORE_ATTACH_ACCESS_H_
