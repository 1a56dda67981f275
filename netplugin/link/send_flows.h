// The flows of a session at the sender's end: whose turn it is, and what became of each. Pure.
#ifndef R2CC_NETPLUGIN_LINK_SEND_FLOWS_H_
#define R2CC_NETPLUGIN_LINK_SEND_FLOWS_H_

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "netplugin/flow/flow_map.h"
#include "netplugin/flow/send_ledger.h"
#include "netplugin/flow/stripe.h"

namespace r2cc::net {

class SendFlows {
 public:
  enum class State { kOpening, kOpen, kFailed };
  struct Flow {
    Flow(FlowId id, const SendLedger::Limits& limits, uint64_t* order, Copies* copies) : id(id), ledger(id, limits, order, copies) {}

    const FlowId id;
    State state = State::kOpening;
    LinkId home = 0;
    uint16_t local_rail = 0;
    std::string error;  // one line, if it failed
    SendLedger ledger;
    bool closing = false;  // the job has closed it; what it holds copies of is still to be delivered

   private:
    friend class SendFlows;
    uint64_t turn = 0;  // when it last began a message
    bool ready = false;
    bool changed = false;
  };

  SendFlows(const SendLedger::Limits& limits, StripeMode mode) : limits_(limits), mode_(mode) {}

  Flow* Open();
  // Null if there is none.
  Flow* Find(FlowId id) { return flows_.Find(id); }
  const Flow& at(FlowId id) const { return flows_.at(id); }
  void Close(FlowId id);
  FlowMap<Flow>& all() { return flows_; }
  bool empty() const { return flows_.empty(); }

  // Call after anything that may have made chunks of the flow ready, or messages done, or changed its state.
  void Note(Flow* flow);
  // After what can only have made messages done.
  void Change(Flow* flow) {
    if (!std::exchange(flow->changed, true)) changed_.push_back(flow->id);
  }
  void Fail(Flow* flow, std::string error);
  // The flows that were noted since the last call.
  // Valid until the next call.
  std::span<const FlowId> TakeChanged();
  bool has_changes() const { return !changed_.empty(); }

  // Some flow waits for an acknowledgement.
  bool outstanding() const;

  // Some flow may have a ready chunk.
  bool ready() const { return !ready_.empty(); }
  // Chunks may go to any link.
  bool deals() const { return mode_ == StripeMode::kBalance; }
  // The message of the chunk is still on its way.
  bool Expects(const Chunk& chunk) const;

  // The next chunk that `link` may carry: a message that was begun, or is replayed, goes first, the oldest before the others; then the
  // flows take turns, message by message. False if there is none.
  bool Pull(std::span<const LinkShare> shares, LinkId link, Carrier carrier, Chunk* chunk);
  // A message of `flow` that may travel eagerly, where nothing else is ready: posted, and its chunk pulled. Else nothing is posted.
  bool PostEagerly(Flow* flow, const void* data, uint64_t bytes, Carrier carrier, Chunk* chunk);
  // How many chunks that `link` may carry are ready, counted up to `most`.
  uint32_t ReadyChunks(std::span<const LinkShare> shares, LinkId link, uint32_t most) const;

  // The receiver has ended `carrier` and told what it has. Returns the bytes to replay.
  uint64_t Reclaim(Carrier carrier, std::span<const FlowArrivals> arrivals);

 private:
  const SendLedger::Limits limits_;
  const StripeMode mode_;
  Copies copies_;  // before the flows, which use it
  FlowMap<Flow> flows_;
  FlowId next_id_ = 1;
  uint64_t order_ = 1;
  uint64_t turns_ = 0;
  bool MayCarry(const Flow& flow, const SendLedger::Ready& ready, std::span<const LinkShare> shares, LinkId link) const;

  // Takes ready_[at] out.
  void NotReady(size_t at);

  std::vector<Flow*> ready_;  // that may have ready chunks
  std::vector<FlowId> changed_, taken_;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_LINK_SEND_FLOWS_H_
