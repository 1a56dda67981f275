// Keeps the receiver's flows of one session: what was posted, what is placed, and what was reported to the sender. Pure.
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
    MessageId wanted_through = 0;  // the sender waits for the grants of all messages below this
    // Some of its buffers are posted and not full.
    bool may_be_placed() const { return ledger.posted_through() > ledger.placed_through(); }

   private:
    friend class RecvFlows;
    MessageId granted_through = 0;  // reported since the last suspicion
    MessageId acked_through = 0;    // reported since the last suspicion
    bool repeat = false;            // what was reported may be lost
    Nanos ack_due_since = 0;        // since when a report waits that no sender needs yet; 0: none waits
    bool touched = false;
    bool changed = false;
  };

  // Grants and acknowledgements leave through `reports`.
  explicit RecvFlows(FlowReportSink* reports, MemoryOps* memory = &host_memory, const RegionGenerations* generations = nullptr)
      : reports_(reports), memory_(memory), generations_(generations) {}

  Flow* Open(FlowId id, LinkId home);
  // Null if there is no such flow.
  Flow* Find(FlowId id) { return flows_.Find(id); }
  const Flow* Find(FlowId id) const { return flows_.Find(id); }
  // Finds the open flow whose number is `slot` modulo `slots`. False: there is none, or more than one.
  bool FindBySlot(uint32_t slot, uint32_t slots, FlowId* flow, MessageId* placed_through) const;
  // Null: no open flow has this slot.
  const Flow* WithSlot(uint32_t slot, uint32_t slots) const;
  const Flow& at(FlowId id) const { return flows_.at(id); }
  template <typename Look>
  void ForEach(Look look) const {
    for (const auto& [id, flow] : flows_) look(flow);
  }
  // Its arrivals are reported until Forget().
  void Close(FlowId id);
  // The initiator knows that the flow is closed.
  void Forget(FlowId id) { closed_.erase(id); }
  bool closed(FlowId id) const { return closed_.contains(id); }
  bool empty() const { return flows_.empty(); }
  size_t size() const { return flows_.size(); }

  // Call after anything that may have changed what is placed.
  void Touch(Flow* flow);
  // Call after a post that placed nothing: the sender may need a report, but the job needs none.
  void TouchPosted(Flow* flow);
  // Only the first error of a flow is kept.
  void Fail(Flow* flow, std::string error);
  void FailAll(const std::string& error);
  // The flows that were touched since the last call, without those whose only change was a posted buffer. Valid until the next call.
  std::span<const FlowId> TakeChanged();

  // Some sender waits for the reports that Flush() sends, or will wait if much more data comes before them.
  bool awaited() const;

  // Set while all rails are there. With a rail missing, the messages of a flow complete out of order over the other rails, and a sender
  // with few messages in flight runs out of credit sooner: then each message is acknowledged at once.
  void set_whole(bool whole) { whole_ = whole; }

  // Some flow waits for data.
  bool outstanding() const;

  // Reports on a channel that is gone may be lost: repeats them on another channel.
  void RepeatReports();
  // Sends the reports that are due: those that a sender waits for at once, the others in batches. Call it while anything was touched, and
  // as time passes.
  void Flush(Nanos now);

  // The path was fenced.
  void Drop(PathEpoch epoch);
  std::vector<FlowArrivals> Arrivals() const;

 private:
  // Returns true if the flow has nothing left to report.
  bool Report(Flow* flow, Nanos now);
  // How long `to_ack` acknowledgements and `to_grant` grants may wait for more to go with them.
  Nanos AckDelay(const Flow& flow, uint64_t to_ack, uint64_t to_grant) const;

  FlowReportSink* const reports_;
  MemoryOps* const memory_;
  const RegionGenerations* const generations_;  // null: no buffer lies in a region
  bool whole_ = false;
  std::map<FlowId, MessageId> closed_;  // placed through
  FlowMap<Flow> flows_;
  std::vector<Flow*> touched_;  // may have something to report
  std::vector<FlowId> changed_, taken_;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_FLOW_RECV_FLOWS_H_
