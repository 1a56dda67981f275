// Selects events by the conditions of a request. Pure.
#ifndef R2CC_DAEMON_CORE_EVENT_FILTER_H_
#define R2CC_DAEMON_CORE_EVENT_FILTER_H_

#include <algorithm>

#include "proto/r2cc.pb.h"

namespace r2cc::daemon {

// An event is about its node and NIC, and about those at the other end.
inline bool Wanted(const v1::EventsRequest& request, const v1::Event& event) {
  if (event.time_ns() < request.since_ns()) return false;
  if (request.kinds_size() > 0 && std::find(request.kinds().begin(), request.kinds().end(), event.kind()) == request.kinds().end())
    return false;
  const auto about = [&request](const std::string& node, const std::string& nic) {
    return (request.node().empty() || request.node() == node) && (request.nic().empty() || request.nic() == nic);
  };
  return about(event.node(), event.nic()) || about(event.peer_node(), event.peer_nic());
}

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_CORE_EVENT_FILTER_H_
