#include "netplugin/rails/link_tracker.h"

#include <algorithm>

namespace r2cc::net {

LinkTracker::LinkTracker(const std::vector<Rail>& rails) {
  for (const Rail& rail : rails) {
    if (rail.ifindex == 0) continue;
    Interface& interface = interfaces_[rail.ifindex];
    interface.name = rail.interface;
    interface.admin_up = interface.carrier_up = interface.admin_up || rail.up;
    if (!rail.address.empty() && Find(interface, rail.address.text) == nullptr) interface.addresses.push_back({rail.address});
    states_.push_back({.rail = rail.index,
                       .interface = rail.interface,
                       .ifindex = rail.ifindex,
                       .address = rail.address,
                       .fixed_address = rail.fixed_address,
                       .link_local = rail.address.IsLinkLocal(),
                       .was_up = rail.up});
  }
}

void LinkTracker::ApplyLink(const NetEvent& event) {
  for (State& state : states_) {
    if (event.name == state.interface && event.ifindex != state.ifindex) {
      // Made anew (a driver's reload), or renamed to this. The one before is gone, although nobody said so.
      if (state.ifindex != 0) interfaces_.erase(state.ifindex);
      state.ifindex = event.ifindex;
    } else if (event.name != state.interface && event.ifindex == state.ifindex) {
      state.ifindex = 0;
    }
  }
  Interface& interface = interfaces_[event.ifindex];
  interface.name = event.name;
  interface.admin_up = event.admin_up;
  interface.carrier_up = event.carrier_up;
  interface.seen = true;
}

void LinkTracker::Forget(int ifindex) {
  interfaces_.erase(ifindex);
  for (State& state : states_)
    if (state.ifindex == ifindex) state.ifindex = 0;
}

void LinkTracker::ForgetUnseen() {
  for (auto it = interfaces_.begin(); it != interfaces_.end();) {
    auto& [ifindex, interface] = *it++;
    std::erase_if(interface.addresses, [](const Address& one) { return !one.seen; });
    if (!interface.seen) Forget(ifindex);
  }
}

void LinkTracker::ApplyAddress(const NetEvent& event) {
  const bool added = event.kind == NetEvent::Kind::kAddressAdded;
  if (!added && !interfaces_.contains(event.ifindex)) return;
  std::vector<Address>& addresses = interfaces_[event.ifindex].addresses;
  const auto it = std::find_if(addresses.begin(), addresses.end(), [&](const Address& one) { return one.address.text == event.address; });
  if (!added) {
    if (it != addresses.end()) addresses.erase(it);
  } else if (it != addresses.end()) {
    it->seen = true;
    it->address.state = event.state;
  } else if (auto address = ParseIpAddress(event.address, event.ifindex)) {
    address->state = event.state;
    addresses.push_back({*std::move(address)});
  }
}

const LinkTracker::Address* LinkTracker::Find(const Interface& interface, const std::string& text) {
  for (const Address& one : interface.addresses)
    if (one.address.text == text) return &one;
  return nullptr;
}

IpAddress LinkTracker::Choose(const Interface& interface, const State& state) {
  if (const Address* same = Find(interface, state.address.text); same != nullptr && same->address.rank() > 0) return same->address;
  HostInterface candidates;
  if (state.fixed_address) return {};
  for (const Address& one : interface.addresses) {
    const bool other_family = !state.address.empty() && one.address.storage.ss_family != state.address.storage.ss_family;
    if (!other_family && one.address.IsLinkLocal() <= state.link_local) candidates.addresses.push_back(one.address);
  }
  return PreferredAddress(candidates);
}

void LinkTracker::Judge(State* state, std::vector<RailLinkEvent>* changes) const {
  const auto it = interfaces_.find(state->ifindex);
  const Interface* const interface = it == interfaces_.end() ? nullptr : &it->second;
  const IpAddress address = interface == nullptr ? IpAddress{} : Choose(*interface, *state);
  const bool moved = !address.empty() && address.text != state->address.text;
  const bool up = interface != nullptr && interface->admin_up && interface->carrier_up && !address.empty();
  const Address* const same = interface == nullptr ? nullptr : Find(*interface, state->address.text);
  const char* const no_address = same != nullptr && same->address.state.duplicate ? "duplicate address" : "address removed";
  const auto report = [&](bool is_up, const char* reason) {
    RailLinkEvent event;
    event.rail = state->rail;
    event.up = state->was_up = is_up;
    event.reason = reason;
    event.address = state->address;
    changes->push_back(event);
  };
  if (state->was_up && up && moved) report(false, no_address);
  if (!address.empty()) state->address = address;
  if (up == state->was_up) return;
  report(up, up                       ? "up"
             : interface == nullptr   ? "interface removed"
             : !interface->admin_up   ? "interface down"
             : !interface->carrier_up ? "no carrier"
                                      : no_address);
}

void LinkTracker::Apply(const NetEvent& event, std::vector<RailLinkEvent>* changes) {
  switch (event.kind) {
    case NetEvent::Kind::kResync:
      for (auto& [ifindex, interface] : interfaces_) {
        interface.seen = false;
        for (Address& one : interface.addresses) one.seen = false;
      }
      break;
    case NetEvent::Kind::kDumpDone: ForgetUnseen(); break;
    case NetEvent::Kind::kLink: ApplyLink(event); break;
    case NetEvent::Kind::kLinkRemoved: Forget(event.ifindex); break;
    case NetEvent::Kind::kAddressAdded:
    case NetEvent::Kind::kAddressRemoved: ApplyAddress(event); break;
  }
  for (State& state : states_) Judge(&state, changes);
}

}  // namespace r2cc::net
