// The flows of a session at the receiver's end: what was posted and placed, and what the sender has been told of it. Pure.
#ifndef R2CC_NETPLUGIN_FLOW_RECV_FLOWS_H_
#define R2CC_NETPLUGIN_FLOW_RECV_FLOWS_H_

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/core/clock.h"
#include "netplugin/flow/flow_map.h"
#include "netplugin/flow/flow_report.h"
#include "netplugin/flow/recv_ledger.h"

namespace r2cc::net {

// At most one incarnation of a link is alive at this end, so the link's number names the path.
constexpr PathEpoch PathEpochOf(LinkId link) { return link; }

class RecvFlows {
 public:
  struct Flow {
    Flow(FlowId id, MemoryOps* memory) : id(id), ledger(id, memory) {}

    const FlowId id;
    LinkId home = 0;
    RecvLedger ledger;
    std::string error;             // empty while the flow can go on; else one line
    MessageId wanted_through = 0;  // the sender waits for the grants of all messages below
    // Some of its buffers are posted and not full.
    bool may_be_placed() const { return ledger.posted_through() > ledger.placed_through(); }

   private:
    friend class RecvFlows;
    MessageId granted_through = 0;  // told since the last suspicion
    MessageId acked_through = 0;    // likewise
    bool tell_again = false;        // what was told may be lost
    Nanos ack_due_since = 0;        // something is to be told, but nobody waits for it; 0: nothing is
    bool touched = false;
    bool changed = false;
  };

  // Grants and acknowledgements leave through `reports`.
  explicit RecvFlows(FlowReportSink* reports, MemoryOps* memory = &host_memory, const RegionGenerations* generations = nullptr)
      : reports_(reports), memory_(memory), generations_(generations) {}

  Flow* Open(FlowId id, LinkId home);
  // Null if there is none.
  Flow* Find(FlowId id) { return flows_.Find(id); }
  const Flow* Find(FlowId id) const { return flows_.Find(id); }
  // The open flow whose number is `slot` modulo `slots`; false: there is none, or more than one.
  bool FindBySlot(uint32_t slot, uint32_t slots, FlowId* flow, MessageId* placed_through) const;
  // Null: no open flow has this slot.
  const Flow* WithSlot(uint32_t slot, uint32_t slots) const;
  const Flow& at(FlowId id) const { return flows_.at(id); }
  template <typename Look>
  void ForEach(Look look) const {
    for (const auto& [id, flow] : flows_) look(flow);
  }
  // Its arrivals are told until Forget().
  void Close(FlowId id);
  // The initiator has heard that it is closed.
  void Forget(FlowId id) { closed_.erase(id); }
  bool closed(FlowId id) const { return closed_.contains(id); }
  bool empty() const { return flows_.empty(); }
  size_t size() const { return flows_.size(); }

  // Call after anything that may have changed what is placed.
  void Touch(Flow* flow);
  // After a post that placed nothing: there may be something to tell the sender, but nothing the job.
  void TouchPosted(Flow* flow);
  // The first line counts.
  void Fail(Flow* flow, std::string error);
  void FailAll(const std::string& error);
  // The flows that were touched since the last call, those left out to which buffers were posted and nothing else.
  // Valid until the next call.
  std::span<const FlowId> TakeChanged();

  // Some sender waits for what Flush() has to tell, or will if much more comes before it.
  bool awaited() const;

  // All rails are there. Else the messages of a flow overtake one another on those that are left, and its sender, which has but a few
  // under way, is short of the next ones sooner: it hears of each.
  void set_whole(bool whole) { whole_ = whole; }

  // Some flow waits for data.
  bool outstanding() const;

  // Whatever was told on a channel that is gone may be lost: tell it again on another.
  void TellAgain();
  // Tells what is due: at once what the sender waits for, together what it does not. Call while anything was touched and time passes.
  void Flush(Nanos now);

  // The path was fenced.
  void Drop(PathEpoch epoch);
  std::vector<FlowArrivals> Arrivals() const;

 private:
  // True if nothing is left to be told of the flow.
  bool Tell(Flow* flow, Nanos now);
  // How long so many acknowledgements and grants may wait for more to go with them.
  Nanos AckDelay(const Flow& flow, uint64_t to_ack, uint64_t to_grant) const;

  FlowReportSink* const reports_;
  MemoryOps* const memory_;
  const RegionGenerations* const generations_;  // null: no buffer lies in a region
  bool whole_ = false;
  std::map<FlowId, MessageId> closed_;  // placed through
  FlowMap<Flow> flows_;
  std::vector<Flow*> touched_;  // there may be something to tell
  std::vector<FlowId> changed_, taken_;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_FLOW_RECV_FLOWS_H_
