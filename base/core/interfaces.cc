#include "base/core/interfaces.h"

#include <poll.h>

#include <map>

#include "base/core/clock.h"

namespace r2cc {
namespace {

// The kernel answers at once; only a dump that was interrupted by changes is repeated.
constexpr Nanos kDumpWithin = 2 * kNanosPerSecond;
constexpr int kPollMs = 20;

}  // namespace

std::vector<Interface> InterfacesOf(std::span<const NetEvent> events) {
  std::map<int, Interface> by_index;
  for (const NetEvent& event : events) {
    if (event.kind == NetEvent::Kind::kLink) {
      Interface& interface = by_index[event.ifindex];
      interface = {event.name,       event.other_names, event.ifindex,
                   event.loopback,   event.dummy,       event.admin_up,
                   event.carrier_up, event.mac,         std::move(interface.addresses)};
    } else if (event.kind == NetEvent::Kind::kAddressAdded) {
      by_index[event.ifindex].addresses.push_back({event.address, event.prefix_bits, event.state});
    }
  }
  std::vector<Interface> interfaces;
  // One that came between the two dumps has addresses alone.
  for (auto& [index, interface] : by_index)
    if (!interface.name.empty()) interfaces.push_back(std::move(interface));
  return interfaces;
}

std::vector<Interface> ReadInterfaces() {
  std::string error;
  const auto socket = NetlinkSocket::Open(&error, NetlinkSocket::Follow::kNothing);
  if (socket == nullptr) return {};
  std::vector<NetEvent> events;
  const SteadyClock clock;
  for (const Nanos began = clock.Now(); clock.Now() - began < kDumpWithin;) {
    std::vector<NetEvent> came;
    socket->Receive(&came);
    for (NetEvent& event : came) {
      if (event.kind == NetEvent::Kind::kDumpDone) return InterfacesOf(events);
      if (event.kind == NetEvent::Kind::kResync) events.clear();
      events.push_back(std::move(event));
    }
    pollfd readable{socket->fd(), POLLIN, 0};
    poll(&readable, 1, kPollMs);
  }
  return {};
}

}  // namespace r2cc
