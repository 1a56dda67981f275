// The flows of a session at the sender's end: whose turn it is, and what became of each. Pure.
#ifndef R2CC_NETPLUGIN_FLOW_SEND_FLOWS_H_
#define R2CC_NETPLUGIN_FLOW_SEND_FLOWS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/core/clock.h"
#include "base/core/function_ref.h"
#include "netplugin/flow/flow_map.h"
#include "netplugin/flow/region_keys.h"
#include "netplugin/flow/send_ledger.h"
#include "netplugin/flow/stripe.h"

namespace r2cc::net {

class SendFlows {
 public:
  enum class State { kOpening, kOpen, kFailed };
  struct Flow {
    Flow(FlowId id, const SendLedger::Limits& limits, uint64_t* order, BufferPool* pool) : id(id), ledger(id, limits, order, pool) {}

    const FlowId id;
    State state = State::kOpening;
    LinkId home = 0;
    uint16_t local_rail = 0;
    bool opened = false;  // the peer accepted it, whatever became of it since
    std::string error;    // one line, if it failed
    bool logged = false;  // the log has the line
    SendLedger ledger;
    bool closing = false;  // the job has closed it; what it holds copies of is still to be delivered
    bool is_dealt() const { return dealt; }
    // Some buffer of NCCL's is still in use: closing the flow now gives up messages.
    bool holds_buffers() const { return ledger.done_through() < ledger.posted_through(); }
    Nanos progressed = 0;  // when a message was done last, or posted after there was none: see FaultWatch. 0: not known

   private:
    friend class SendFlows;
    uint64_t turn = 0;     // when it last began a message
    double weight = 1;     // see SetWeight()
    size_t clock = 0;      // on which of the clocks
    double served = 0;     // it has had so many bytes per weight
    bool dealt = false;    // see SetDealt()
    bool dealing = false;  // it is dealt, and waits for an acknowledgement
    bool ready = false;
    bool changed = false;
    Nanos stranded = 0;  // see AgeStranded()
  };

  // What a message costs a link beside its bytes.
  static constexpr uint64_t kHeaderBytes = 48;

  SendFlows(const SendLedger::Limits& limits, StripeMode mode, MemoryOps* memory = &host_memory, const RegionKeys* keys = nullptr)
      : limits_(limits), mode_(mode), keys_(keys), pool_(memory) {}

  // `slots`: no two open flows have the same number modulo so many; 0: any numbers do. Null: all are taken.
  Flow* Open(uint32_t slots = 0);
  // Null if there is none.
  Flow* Find(FlowId id) { return flows_.Find(id); }
  const Flow* Find(FlowId id) const { return flows_.Find(id); }
  const Flow& at(FlowId id) const { return flows_.at(id); }
  void Close(FlowId id);
  // What the flow gets of links that it shares with others, relative to theirs; 1 unless set. Counts from its next message on. False, and
  // nothing changes, if there is no such flow or the weight is not a number within these bounds: nobody means what is beyond, and sums of
  // bytes per weight would lose the bytes of others.
  static constexpr double kWeightLeast = 1e-6;
  static constexpr double kWeightMost = 1e6;
  [[nodiscard]] bool SetWeight(FlowId id, double weight);
  // Flows that were posted to without a time, by PostEagerly, get one: at most a tick too late.
  void Date(Nanos now) {
    if (!std::exchange(undated_, false)) return;
    for (auto& [id, flow] : flows_)
      if (flow.progressed == 0) flow.progressed = now;
  }
  // A flow may want its messages striped over all links, however sound those are. Until all of its messages are acknowledged those of the
  // other flows are, too. No effect if there is no such flow.
  void SetDealt(FlowId id, bool dealt);
  // Some flow is dealt: no link may be missing when it sends.
  bool wants_all_links() const { return dealt_ > 0 && deals(); }
  // Some flow that is dealt waits for an acknowledgement.
  bool dealing() const { return dealing_ > 0 && deals(); }
  FlowMap<Flow>& all() { return flows_; }
  const FlowMap<Flow>& all() const { return flows_; }
  bool empty() const { return flows_.empty(); }

  // Call after anything that may have made chunks of the flow ready, or messages done, or changed its state.
  void Note(Flow* flow);
  // After what can only have made messages done.
  void Change(Flow* flow) {
    CountDealing(flow);
    if (!std::exchange(flow->changed, true)) changed_.push_back(flow->id);
  }
  // `told`: the log has the line.
  void Fail(Flow* flow, std::string error, bool logged);
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

  // The next chunk that `link` may carry: a message that was begun, or is replayed, goes first, the oldest before the others. Then the
  // flow that has had the fewest bytes per weight, of those that are ready here, begins a message, and of equal ones the one that has
  // waited longest (start-time fair queueing: Goyal, Vin, Cheng, SIGCOMM 1996). A flow that had nothing ready is as far as the others: it
  // has no claim to what it left to them. So two flows that stay ready differ by at most one message each. False if there is none.
  // While chunks are striped a link that would finish later than the others leaves the chunk to them, until they should have finished.
  bool Pull(std::span<const LinkShare> shares, LinkId link, PathEpoch epoch, Chunk* chunk, Nanos now);
  // A message of `flow` that may travel eagerly, where nothing else is ready: posted, and its chunk pulled. Else nothing is posted.
  bool PostEagerly(Flow* flow, const Buffer& from, uint64_t bytes, PathEpoch epoch, Chunk* chunk);
  // How many chunks that `link` may carry are ready, counted up to `most`.
  uint32_t ReadyChunks(std::span<const LinkShare> shares, LinkId link, uint32_t most, Nanos now) const;

  // The peer answers, and has done so for `answering` since the last call: flows whose next chunk lies in memory that none of the usable
  // links has reached for `deadline` of that are given to `expired`, which fails them. Without a usable link nothing is counted.
  void AgeStranded(std::span<const LinkShare> shares, Nanos answering, Nanos deadline, FunctionRef<void(Flow*)> expired);
  // At the last AgeStranded() there was such a flow.
  bool any_stranded() const { return any_stranded_; }

  // The receiver has told of some flows what it has.
  void Arrived(std::span<const FlowArrivals> arrivals);
  // It has ended `epoch` and told what it has of all flows. Returns the bytes to replay.
  uint64_t Reclaim(PathEpoch epoch);

 private:
  const SendLedger::Limits limits_;
  const StripeMode mode_;
  const RegionKeys* const keys_;  // null: no buffer lies in a region
  BufferPool pool_;               // before the flows, which use it
  FlowMap<Flow> flows_;
  FlowId next_id_ = 1;
  uint64_t order_ = 1;
  uint64_t turns_ = 0;
  size_t dealt_ = 0, dealing_ = 0;  // flows
  bool any_stranded_ = false;
  bool undated_ = false;
  // A link left a chunk to others since the last one was pulled, and they should have finished then. If they have not, any link may pull: a
  // rail may be slower than it was.
  std::optional<Nanos> others_finish_at_;
  // Flows that compete are compared by one clock (virtual time, in bytes per weight): each link has its own, and all links share the first
  // while chunks are dealt out to all. A clock stands where the flow that last began a message stood before it. What a flow was served by
  // another clock says nothing here.
  std::vector<double> clocks_{0.0};
  size_t ClockOf(std::span<const LinkShare> shares, LinkId link) const { return Stripes(shares) ? 0 : size_t{link} + 1; }
  bool Stripes(std::span<const LinkShare> shares) const { return deals() && (dealing() || Spread(shares)); }
  void CountDealing(Flow* flow);
  void Begin(Flow* flow, size_t clock, double start, uint64_t message_bytes);
  uint64_t ReadyBytes() const;
  bool Stranded(const Flow& flow, std::span<const LinkShare> shares) const;
  // Both ends' devices reach the memory of the message by the link.
  bool Reaches(const SendLedger::Ready& ready, LinkId link) const {
    return keys_->Reaches(ready.region, link) && keys_->SendsFrom(ready.rails, link);
  }
  std::span<const LinkShare> Reaching(const SendLedger::Ready& ready, std::span<const LinkShare> shares) const;
  // What decides besides the links' own state whether a link pulls a chunk, or leaves it to others.
  struct Moment {
    Nanos now = 0;
    uint64_t ready_bytes = 0;
    std::optional<Nanos> others_finish_at = std::nullopt;  // set if it leaves one to them
  };
  bool MayCarry(const Flow& flow, const SendLedger::Ready& ready, std::span<const LinkShare> shares, LinkId link, Moment* moment) const;

  // Takes ready_[at] out.
  void NotReady(size_t at);

  mutable std::vector<LinkShare> reaching_;  // of one call
  std::vector<Flow*> ready_;                 // that may have ready chunks
  std::vector<FlowId> changed_, taken_;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_FLOW_SEND_FLOWS_H_
