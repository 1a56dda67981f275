// How the flows of a group come to be, at one member. Whoever connects the group's members gives it.
#ifndef R2CC_NETPLUGIN_COLLNET_GROUP_FLOWS_H_
#define R2CC_NETPLUGIN_COLLNET_GROUP_FLOWS_H_

#include <cstdint>
#include <optional>

#include "netplugin/flow/flow_port.h"

namespace r2cc::collnet {

// One thread at a time, the port's. No call waits for a member.
class GroupFlows {
 public:
  virtual ~GroupFlows() = default;
  // Of all flows of the group. Lives as long as this.
  virtual net::FlowPort* port() = 0;
  // A flow to a member. It opens meanwhile, and what is sent waits; if it does not open, port()->Error() says why.
  virtual net::FlowRef Open(uint32_t member) = 0;
  // A flow from some member, its Open() there, that was not given to anybody yet.
  virtual std::optional<net::FlowRef> Accept() = 0;
};

}  // namespace r2cc::collnet

#endif  // R2CC_NETPLUGIN_COLLNET_GROUP_FLOWS_H_
