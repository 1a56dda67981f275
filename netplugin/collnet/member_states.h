// What the members of a group have said of themselves: what their rails can carry, and to whom they have no path. Pure.
#ifndef R2CC_NETPLUGIN_COLLNET_MEMBER_STATES_H_
#define R2CC_NETPLUGIN_COLLNET_MEMBER_STATES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "netplugin/collnet/message.h"

namespace r2cc::collnet {

// Members that are named are members of the group.
class MemberStates {
 public:
  explicit MemberStates(uint32_t members) : states_(members) {}

  // False: that, or something later, is known of the member already.
  bool Learn(const MemberState& state);
  bool Knows(uint32_t member) const { return states_[member].has_value(); }
  // Neither says of the other that it has no path to it.
  bool HavePath(uint32_t a, uint32_t b) const { return !SaysUnreachable(a, b) && !SaysUnreachable(b, a); }
  // Some member had no path to another some time.
  bool any_was_unreachable() const { return any_was_unreachable_; }

  // What each can carry. Who has not said yet is taken to be like the quickest.
  std::vector<uint64_t> BytesPerSecond() const;
  // Of each, whether it has a path to all others.
  std::vector<bool> ReachAll() const;

 private:
  bool SaysUnreachable(uint32_t member, uint32_t other) const;

  std::vector<std::optional<MemberState>> states_;
  bool any_was_unreachable_ = false;
};

}  // namespace r2cc::collnet

#endif  // R2CC_NETPLUGIN_COLLNET_MEMBER_STATES_H_
