// Keeps what the members of a group have reported of themselves: the capacity of their rails, and members to which they have no path. Pure.
#ifndef R2CC_NETPLUGIN_COLLNET_MEMBER_STATES_H_
#define R2CC_NETPLUGIN_COLLNET_MEMBER_STATES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "netplugin/collnet/message.h"

namespace r2cc::collnet {

// Every member number must be in the group.
class MemberStates {
 public:
  explicit MemberStates(uint32_t members) : states_(members) {}

  // False: this report, or a later one of the member, is known already.
  bool Learn(const MemberState& state);
  bool Knows(uint32_t member) const { return states_[member].has_value(); }
  // Neither has reported that it has no path to the other.
  bool HavePath(uint32_t a, uint32_t b) const { return !ReportsUnreachable(a, b) && !ReportsUnreachable(b, a); }
  // Some member once had no path to another.
  bool any_was_unreachable() const { return any_was_unreachable_; }

  // The capacity of each. A member that has not reported yet counts as equal to the fastest.
  std::vector<uint64_t> BytesPerSecond() const;
  // For each member, whether it has a path to all others.
  std::vector<bool> ReachAll() const;

 private:
  bool ReportsUnreachable(uint32_t member, uint32_t other) const;

  std::vector<std::optional<MemberState>> states_;
  bool any_was_unreachable_ = false;
};

}  // namespace r2cc::collnet

#endif  // R2CC_NETPLUGIN_COLLNET_MEMBER_STATES_H_
