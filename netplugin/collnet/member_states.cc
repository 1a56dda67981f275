#include "netplugin/collnet/member_states.h"

#include <algorithm>

namespace r2cc::collnet {

bool MemberStates::Learn(const MemberState& state) {
  std::optional<MemberState>& known = states_[state.member];
  if (known.has_value() && state.number <= known->number) return false;
  known = state;
  any_was_unreachable_ |= !state.unreachable.empty();
  return true;
}

bool MemberStates::ReportsUnreachable(uint32_t member, uint32_t other) const {
  const std::optional<MemberState>& state = states_[member];
  return state.has_value() && std::binary_search(state->unreachable.begin(), state->unreachable.end(), other);
}

std::vector<uint64_t> MemberStates::BytesPerSecond() const {
  uint64_t most = 0;
  for (const auto& state : states_) most = std::max(most, state.has_value() ? state->bytes_per_s : 0);
  std::vector<uint64_t> all;
  for (const auto& state : states_) all.push_back(state.has_value() ? state->bytes_per_s : most);
  return all;
}

std::vector<bool> MemberStates::ReachAll() const {
  std::vector<bool> all(states_.size(), true);
  for (const auto& state : states_) {
    if (!state.has_value() || state->unreachable.empty()) continue;
    all[state->member] = false;
    for (const uint32_t other : state->unreachable) all[other] = false;
  }
  return all;
}

}  // namespace r2cc::collnet
