// Opens the flows of a group of members for collectives, through the process's engine. Each member has a listener of its own; all members
// know the handles of all.
#ifndef R2CC_NETPLUGIN_TRANSPORT_COLLECTIVE_ENGINE_GROUP_H_
#define R2CC_NETPLUGIN_TRANSPORT_COLLECTIVE_ENGINE_GROUP_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "netplugin/collnet/group_flows.h"
#include "netplugin/transport/engine.h"

namespace r2cc::net {

// One thread at a time.
class EngineGroup final : public collnet::GroupFlows {
 public:
  // `handles`: of all members, in their order. The group takes the listener, and closes it.
  EngineGroup(Engine* engine, uint64_t listen_id, std::vector<Handle> handles);
  // Closes all flows.
  ~EngineGroup() override;

  FlowPort* port() override { return &port_; }
  FlowRef Open(uint32_t member) override;
  std::optional<FlowRef> Accept() override;

 private:
  Engine* const engine_;
  const uint64_t listen_id_;
  const std::vector<Handle> handles_;
  PeerFlowPort port_;
  std::vector<uint32_t> opened_;  // flows, by member
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_COLLECTIVE_ENGINE_GROUP_H_
