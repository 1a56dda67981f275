// Runs the acceptor's end of the path from one process to another: posted buffers, grants, acknowledgements, and the fence itself. Pure:
// events in, actions out, time as an argument; one thread at a time.
#ifndef R2CC_NETPLUGIN_LINK_RECV_SESSION_H_
#define R2CC_NETPLUGIN_LINK_RECV_SESSION_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/core/clock.h"
#include "netplugin/flow/recv_flows.h"
#include "netplugin/link/action.h"
#include "netplugin/link/announced_regions.h"
#include "netplugin/link/control_queue.h"
#include "netplugin/link/cross_rail.h"
#include "netplugin/link/job_wait.h"
#include "netplugin/link/link_table.h"
#include "netplugin/link/recv_links.h"
#include "netplugin/link/retiring_flows.h"

namespace r2cc::net {

class RecvSession {
 public:
  struct Options {
    uint16_t local_rails = 1;
    uint16_t remote_rails = 1;
    Nanos deadline = 30 * kNanosPerSecond;
    Nanos silence = 250 * kNanosPerMs;
    // Arriving chunks may name a flow only by its number modulo `flow_slots`: no two open flows share a slot. 0: they name the whole
    // number.
    uint32_t flow_slots = 0;
    std::string peer;  // its node's name
    MemoryOps* memory = &host_memory;
    AcceptorObserver observer;
    // As SendSession's. A receiver does not know the fates of its rails.
    std::function<std::string(Nanos lasted)> gave_up;
  };
  RecvSession(const Options& options, Nanos now);
  RecvSession(const RecvSession&) = delete;
  RecvSession& operator=(const RecvSession&) = delete;

  // ---- the job ----

  // Answers to kFlowOpened; `home` is the link of that action.
  void AcceptFlow(FlowId flow, LinkId home);
  void RefuseFlow(FlowId flow);
  const RecvFlows& flows() const { return flows_; }
  // The buffer must stay until the flow's ledger.placed_through() passes the returned id or CloseFlow() returned.
  MessageId Post(FlowId flow, const Buffer& to, uint64_t capacity_bytes, Nanos now);
  // A buffer in registered memory is posted after, or with, the announcement of that memory to the peer.
  const AnnouncedRegions& regions() const { return regions_; }
  void UseRegion(FlowId flow, const std::shared_ptr<const Region>& region, Nanos now) { regions_.Use(region, flows_.at(flow).home, now); }
  // The region's keys have changed, or it is not registered any more.
  void RegionChanged(const std::shared_ptr<const Region>& region, Nanos now) {
    if (!failed_ && regions_.Changed(region, now)) flows_.RepeatReports();
  }
  using Writer = RetiringFlows::Writer;
  // Closes a flow. Its acknowledgements outlive it. `writers`: links that may still place into its buffers: see RetiringFlows.
  void CloseFlow(FlowId flow, const std::vector<Writer>& writers, Nanos now);
  // Flows that are closed, and whose buffers may still be written.
  const RetiringFlows& retiring() const { return retiring_; }
  // Flows whose state or progress may have changed since the last call.
  std::span<const FlowId> TakeChanged() { return flows_.TakeChanged(); }

  // ---- channels and links ----

  void OobUp(Nanos now);
  void OobDown(Nanos now);
  // The answer to kProbePeer.
  void PeerProbed(ProbeResult result, Nanos now);
  const RecvLinks& links() const { return links_; }
  using Admission = RecvLinks::Admission;
  Admission Greet(LinkId link, Incarnation incarnation, uint16_t local_rail, uint16_t remote_rail, Nanos now);
  void LinkClosed(LinkId link, Incarnation incarnation, bool ok, Nanos now);
  void ChannelOpened(LinkId link, Incarnation incarnation, Nanos now) { links_.ChannelOpened(link, incarnation, now); }
  void LinkTrouble(LinkId link, Incarnation incarnation, plan::EvidenceCause cause, Nanos now);
  // The process's own link monitor reports a rail.
  void LocalRail(uint16_t rail, bool up, Nanos now);
  // The health page's verdicts on this node's rails and on the peer's.
  void LocalVerdict(uint16_t rail, bool failed, Nanos now);
  void RemoteVerdict(uint16_t rail, bool failed, Nanos now);
  // See RecvLinks; `rails.local` is this node's.
  void RailsStalled(RailPair rails, Nanos now);
  // The page's verdict on a path between them; `rails.local` is this node's.
  void PathVerdict(RailPair rails, bool broken, Nanos now);
  void Receive(ChannelId channel, const Frame& frame, Nanos now);
  void Proved(LinkId link, Incarnation incarnation, bool ok) { links_.Proved(link, incarnation, ok); }
  void Tick(Nanos now);
  // Sends the grants and acknowledgements that are due: those that the sender waits for at once, the others in batches.
  void Flush(Nanos now) { flows_.Flush(now); }

  // ---- bulk ----

  // False: the link is not (or no longer) at this incarnation, or the peer broke the protocol: end it. The peer uses only links that place
  // by themselves for chunks that go to GPU memory.
  bool Begin(LinkId link, Incarnation incarnation, const Chunk& header, std::byte** destination);
  // The chunk is in place. True if messages of the flow became whole. Refused once the link is ending: the chunk counts as not placed.
  bool Finish(LinkId link, Incarnation incarnation, const Chunk& header);

  // Answers kFlush.
  void Flushed(LinkId link, Incarnation incarnation, const FlushName& name);

  // Begin() and Finish() in one call, for a transport in which the sender places. kRefused: as Begin(). kLate: into a message that was
  // reported done.
  enum class Arrival { kPlaced, kRefused, kLate };
  Arrival Placed(LinkId link, Incarnation incarnation, const Chunk& header);

  const ControlQueue& channels() const { return control_queue_; }
  // On every channel that is open.
  void SendAll(const Frame& frame) { control_queue_.SendAll(frame); }
  // Finds the flow whose number is `slot` modulo `slots` among those that are open or whose buffers may still be written. False: none, or
  // more than one.
  bool FindFlow(uint32_t slot, uint32_t slots, FlowId* flow, MessageId* placed_through) const {
    return flows_.FindBySlot(slot, slots, flow, placed_through) || retiring_.Find(slot, slots, flow, placed_through);
  }

  std::vector<SessionAction> TakeActions() { return std::exchange(actions_, {}); }
  bool has_actions() const { return !actions_.empty(); }

  bool idle() const { return flows_.empty() && control_queue_.idle() && retiring_.empty(); }
  bool failed() const { return failed_; }
  JobRequests Requests() const;
  // What the outstanding requests wait for.
  JobWait WaitsFor(Nanos now) const;

 private:
  void AskWriters();
  void EndWriters(Nanos now);
  SessionAction& Add(SessionAction::Kind kind) { return actions_.emplace_back(SessionAction{.kind = kind}); }
  bool BeginChunk(LinkId link, Incarnation incarnation, const Chunk& header, std::byte** destination);
  void OpenFlow(ChannelId channel, const frames::FlowOpen& open);
  void EndFlow(ChannelId channel, FlowId id);
  void Garbled(ChannelId channel, Nanos now);
  // Call after anything that may have taken the last link.
  void LinksChanged(Nanos now);
  void Suspicion(Nanos now);
  // The job, or a frame, waits for the peer.
  bool waiting() const { return flows_.outstanding() || !control_queue_.idle(); }
  bool OobSilent(Nanos now) const;
  void PingOob(Nanos every, Nanos now);
  bool Unreachable(Nanos now);
  void CheckLost(Nanos now);
  // An open flow, or one that is about to open, has the same slot as this one.
  bool SlotTaken(FlowId flow) const;
  void FailFlow(RecvFlows::Flow* flow, std::string error, plan::Failure failure);
  void Overflowed(RecvFlows::Flow* flow);
  void FailAll(const std::string& error, plan::Failure failure);

  const Options options_;
  std::vector<SessionAction> actions_;
  ControlQueue control_queue_{&actions_};
  AnnouncedRegions regions_{&control_queue_};
  RecvFlows flows_{&control_queue_, options_.memory, &regions_};
  RecvLinks links_;
  bool had_link_ = false;
  Nanos ticked_;
  Nanos unreachable_ = 0;  // for how long no link has been up although the peer was not merely stopped
  Nanos oob_pinged_ = 0;
  Nanos oob_silent_since_ = 0;  // since when a ping there has had no answer; 0: none waits
  Nanos last_received_;         // when anything came last, on any channel or bulk socket
  bool received_bulk_ = false;  // since the last tick
  Nanos probed_ = 0;
  ProbeResult probe_ = ProbeResult::kSilent;  // the result of the last probe
  std::set<FlowId> opening_;                  // reported to the transport, which has not answered yet
  FlowId refused_ = 0;                        // the last flow that was refused for its slot
  RetiringFlows retiring_;
  bool failed_ = false;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_LINK_RECV_SESSION_H_
