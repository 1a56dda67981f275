// Opens and accepts the flows of a group at one member. The code that connects the group's members implements it.
#ifndef R2CC_NETPLUGIN_COLLNET_GROUP_FLOWS_H_
#define R2CC_NETPLUGIN_COLLNET_GROUP_FLOWS_H_

#include <cstdint>
#include <optional>

#include "netplugin/flow/flow_port.h"

namespace r2cc::collnet {

// One thread at a time, which is also the port's. No call waits for a member.
class GroupFlows {
 public:
  virtual ~GroupFlows() = default;
  // The port of all flows of the group. Lives as long as this.
  virtual net::FlowPort* port() = 0;
  // Opens a flow to a member. It opens in the background, and sends wait; if it does not open, port()->Error() has the reason.
  virtual net::FlowRef Open(uint32_t member) = 0;
  // A flow that some member opened to this one, and that was not returned yet.
  virtual std::optional<net::FlowRef> Accept() = 0;
};

}  // namespace r2cc::collnet

#endif  // R2CC_NETPLUGIN_COLLNET_GROUP_FLOWS_H_
