#include "netplugin/rails/link_tracker.h"

namespace r2cc::net {

LinkTracker::LinkTracker(const std::vector<Rail>& rails) {
  for (const Rail& rail : rails) {
    if (rail.ifindex == 0) continue;
    State state{};
    state.rail = rail.index;
    state.interface = rail.interface;
    state.ifindex = rail.ifindex;
    state.address = rail.address;
    state.link_up = state.admin_up = state.was_up = rail.up;
    state.has_address = !rail.address.empty();
    states_.push_back(state);
  }
}

void LinkTracker::ApplyLink(const NetEvent& event, State* state) {
  if (event.kind == NetEvent::Kind::kLinkRemoved) {
    if (event.ifindex != state->ifindex) return;
    state->ifindex = 0;
    state->link_up = state->admin_up = state->has_address = false;
    return;
  }
  if (event.name == state->interface && event.ifindex != state->ifindex) {
    // Made anew under the same name (a driver's reload); its addresses are still to come.
    state->ifindex = event.ifindex;
    state->has_address = false;
  }
  if (event.ifindex != state->ifindex) return;
  state->seen_link = true;
  state->admin_up = event.admin_up;
  state->link_up = event.admin_up && event.carrier_up;
}

void LinkTracker::ApplyAddress(const NetEvent& event, State* state) {
  if (event.ifindex != state->ifindex) return;
  const bool added = event.kind == NetEvent::Kind::kAddressAdded;
  if (state->address.empty() && added) {
    const auto address = ParseIpAddress(event.address, event.ifindex);
    // A link-local address comes by itself as soon as the interface is up; the rail waits for one that was meant for it.
    if (address.has_value() && !address->IsLinkLocalV6()) state->address = *address;
  }
  if (state->address.text != event.address) return;
  state->has_address = added;
  state->seen_address = state->seen_address || added;
}

void LinkTracker::Report(State* state, std::vector<RailLinkEvent>* changes) {
  const bool up = state->link_up && state->has_address;
  if (up == state->was_up) return;
  state->was_up = up;
  RailLinkEvent event;
  event.rail = state->rail;
  event.up = up;
  event.reason = up                    ? "up"
                 : state->ifindex == 0 ? "interface removed"
                 : !state->admin_up    ? "interface down"
                 : !state->link_up     ? "no carrier"
                                       : "address removed";
  event.address = state->address;
  changes->push_back(event);
}

void LinkTracker::Apply(const NetEvent& event, std::vector<RailLinkEvent>* changes) {
  for (State& state : states_) {
    switch (event.kind) {
      case NetEvent::Kind::kResync: state.seen_link = state.seen_address = false; break;
      case NetEvent::Kind::kDumpDone:
        if (!state.seen_link) {
          state.ifindex = 0;
          state.link_up = state.admin_up = false;
        }
        if (!state.seen_address) state.has_address = false;
        break;
      case NetEvent::Kind::kLink:
      case NetEvent::Kind::kLinkRemoved: ApplyLink(event, &state); break;
      case NetEvent::Kind::kAddressAdded:
      case NetEvent::Kind::kAddressRemoved: ApplyAddress(event, &state); break;
    }
    Report(&state, changes);
  }
}

}  // namespace r2cc::net
