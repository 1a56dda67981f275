// The flows of a group at a member of the simulation; what EngineGroup is to a process.
#ifndef R2CC_TESTS_SIM_SIM_FLOWS_H_
#define R2CC_TESTS_SIM_SIM_FLOWS_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "netplugin/collnet/group_flows.h"
#include "netplugin/transport/bounce.h"
#include "netplugin/transport/flow_port.h"
#include "tests/sim/process.h"

namespace r2cc::sim {

class SimFlows final : public collnet::GroupFlows {
 public:
  // Called for each flow that this end opens to `member`.
  using Opened = std::function<void(int member, net::FlowId flow)>;
  // `pool`: of what bounces, where requests may lie in a GPU's memory; null: they do not. Both outlive this.
  SimFlows(Process* process, int rails, net::BouncePool* pool, Opened opened = nullptr)
      : process_(process), rails_(rails), pool_(pool), on_opened_(std::move(opened)) {}
  net::FlowPort* port() override { return &port_; }
  net::FlowRef Open(uint32_t member) override {
    const auto& flow = sends_.emplace_back(process_->Connect(static_cast<int>(member), 0, opened_[member]++ % rails_));
    if (on_opened_) on_opened_(static_cast<int>(member), flow.id);
    return Add(flow, false);
  }
  std::optional<net::FlowRef> Accept() override {
    Process::RecvFlow flow;
    if (!process_->Accept(0, &flow)) return std::nullopt;
    return Add(receives_.emplace_back(flow), true);
  }

 private:
  template <typename Flow>
  net::FlowRef Add(const Flow& flow, bool receives) {
    if (pool_ != nullptr) flow.comm->bounce = net::NewBounce(pool_, receives);
    return port_.Add(flow.peer.get(), flow.id, flow.comm.get(), [flow] {
      const net::PeerLock lock(*flow.peer);
      flow.peer->Close(flow.id);
    });
  }

  Process* const process_;
  const int rails_;
  net::BouncePool* const pool_;
  const Opened on_opened_;
  std::map<uint32_t, int> opened_;
  std::deque<Process::SendFlow> sends_;
  std::deque<Process::RecvFlow> receives_;
  net::PeerFlowPort port_;
};

}  // namespace r2cc::sim

#endif  // R2CC_TESTS_SIM_SIM_FLOWS_H_
