// Runs the initiator's end of the path from one process to another: flows, links, fences and replays. Pure: events in, actions out, time as
// an argument; one thread at a time.
//
// Bulk travels only from the initiator (the sender's process) to the acceptor; control frames travel both ways. A process that also
// receives from its peer has a second session with the roles exchanged.
#ifndef R2CC_NETPLUGIN_LINK_SEND_SESSION_H_
#define R2CC_NETPLUGIN_LINK_SEND_SESSION_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/core/clock.h"
#include "netplugin/flow/send_flows.h"
#include "netplugin/flow/stripe.h"
#include "netplugin/flow/tuning.h"
#include "netplugin/link/action.h"
#include "netplugin/link/chunk_size.h"
#include "netplugin/link/control_queue.h"
#include "netplugin/link/failure_detector.h"
#include "netplugin/link/fault_watch.h"
#include "netplugin/link/fenced_parts.h"
#include "netplugin/link/job_wait.h"
#include "netplugin/link/oob_watch.h"
#include "netplugin/link/remote_regions.h"
#include "netplugin/link/send_links.h"
#include "netplugin/link/transport_choice.h"

namespace r2cc::net {

class SendSession {
 public:
  struct Options {
    uint16_t local_rails = 1;
    std::vector<TransportSet> local_transports;  // by rail; empty: all have TCP
    uint32_t chunk_base_bytes = tuning::kChunkBytesBase;
    bool chunks_follow_rate = false;  // see ChunkBytesOf(); false: all have the base
    uint32_t eager_bytes = 0;         // messages up to this size take the eager path; 0: none
    Nanos silence = 250 * kNanosPerMs;
    Nanos deadline = 30 * kNanosPerSecond;
    StripeMode mode = StripeMode::kBalance;
    MemoryOps* memory = &host_memory;
    std::string peer;  // for messages, until the peer has sent its name
    InitiatorObserver observer;
    uint32_t flow_slots = 0;  // open flows differ by their numbers modulo this; 0: by the whole number
    uint64_t retry_seed = 0;  // the session's own: see RetryPolicy
    bool all_links = true;    // at once; false: when they are needed, see LinkDemand
    // Makes the error's line when the peer was out of reach for the deadline and its flows end. Null: a plain line.
    std::function<std::string(std::span<const LinkFate> fates, Nanos lasted)> gave_up;
  };
  SendSession(const Options& options, Nanos now);
  SendSession(const SendSession&) = delete;
  SendSession& operator=(const SendSession&) = delete;

  // ---- the job ----

  FlowId OpenFlow(uint64_t listen_id, uint16_t local_rail, Nanos now);
  using FlowState = SendFlows::State;
  // The flows that were opened and are not closed, or hold copies of data that is still to be delivered.
  const SendFlows& flows() const { return flows_; }
  // Memory of this process is registered on other rails now.
  void OwnRegionChanged(RegionId memory, RailSet rails) {
    for (auto& [id, flow] : flows_.all()) {
      flow.ledger.SetRails(memory, rails);
      flows_.Note(&flow);
    }
  }
  // The buffer must stay until the flow's ledger.done_through() passes the returned id or CloseFlow() returned. `rails`: those of this
  // process whose devices may read it.
  MessageId Post(FlowId flow, const Buffer& from, uint64_t bytes, Nanos now, RailSet rails = kAllRails);
  // Posts a small message whose chunk can leave at once by the flow's home link, and pulls the chunk. Otherwise false, and nothing is
  // posted.
  bool PostEagerly(FlowId flow, const Buffer& from, uint64_t bytes, Incarnation incarnation, Chunk* chunk) {
    SendFlows::Flow* const of = flows_.Find(flow);
    return links_.PostEagerly(of->home, incarnation, of, from, bytes, chunk);
  }
  // If the message travels eagerly: copies it, so that it is done, and returns the copy; a writer that has sent a part of it goes on from
  // there. Otherwise null.
  const std::byte* Release(FlowId flow, MessageId message);
  // Where in the peer's memory a chunk goes that `link` has pulled.
  WriteTarget TargetOf(LinkId link, const Chunk& chunk) const;
  // If the flow holds buffers, the transport must already have ended the links that are half-way through a chunk of it. Messages that were
  // reported done are still delivered.
  void CloseFlow(FlowId flow, Nanos now);
  // See SendFlows::SetWeight().
  [[nodiscard]] bool SetWeight(FlowId flow, double weight) { return flows_.SetWeight(flow, weight); }
  // See SendFlows::SetDealt().
  void SetDealt(FlowId flow, bool dealt) { flows_.SetDealt(flow, dealt); }
  // Flows whose state or progress may have changed since the last call.
  std::span<const FlowId> TakeChanged() { return flows_.TakeChanged(); }

  // ---- channels and links ----

  // The peer answered on the out-of-band channel. The first time this decides the links: see SendLinks::SetRemoteRails().
  void OobUp(const std::string& peer_node, std::span<const RailInfo> remote_rails, Nanos now);
  // The peer's kernel has accepted the connection, and the greeting is unanswered. The connection stays.
  void OobUngreeted(Nanos now) { oob_.Ungreeted(now); }
  // The connection broke, or an attempt to make it failed.
  void OobDown(ProbeResult result, Nanos now);
  // The answer to kProbePeer.
  void PeerProbed(ProbeResult result, Nanos now);
  // Before OobUp() there are none.
  const SendLinks& links() const { return links_; }
  SendLinkInput& link_input() { return links_; }
  void LinkTrouble(LinkId link, Incarnation incarnation, plan::EvidenceCause cause, Nanos now);
  // The process's own link monitor reports a rail.
  void LocalRail(uint16_t rail, bool up, Nanos now);
  void Receive(ChannelId channel, const Frame& frame, Nanos now);
  // At least every 10 ms while anything is outstanding, and after all pending input was read.
  void Tick(Nanos now);

  // See SendLinks.
  bool Pull(LinkId link, Incarnation incarnation, Chunk* chunk, Nanos now) { return links_.Pull(link, incarnation, chunk, now); }
  // The chunk size of a message that a flow of this link posts now; see ChunkBytesFor().
  uint32_t ChunkBytes(LinkId home, bool dealt = false) const;
  // False: each flow's chunks travel on one link only, mostly its home.
  bool shared() const { return links_.spread() && options_.mode == StripeMode::kBalance; }

  const ControlQueue& channels() const { return control_queue_; }
  // On every channel that is open.
  void SendAll(const Frame& frame) { control_queue_.SendAll(frame); }

  std::vector<SessionAction> TakeActions() { return std::exchange(actions_, {}); }
  bool has_actions() const { return !actions_.empty(); }

  // ---- for the transport and the record ----

  bool outstanding() const { return !control_queue_.idle() || flows_.outstanding(); }
  const FailureDetector& detector() const { return detector_; }
  // No flow is open and no frame waits for an answer: the session may end.
  bool idle() const { return flows_.empty() && control_queue_.idle(); }
  bool failed() const { return failed_; }
  JobRequests Requests() const;
  // What the outstanding requests wait for. Visits each flow.
  JobWait WaitsFor() const;

 private:
  SessionAction& Add(SessionAction::Kind kind) { return actions_.emplace_back(SessionAction{.kind = kind}); }
  void Handle(ChannelId channel, const Frame& frame, Nanos now);
  void Opened(const frames::FlowOpened& opened);
  void ReceiveReport(ChannelId channel, const FlowReport& report, Nanos now);
  void ReceiveGrant(ChannelId channel, const FlowReport& grant, SendFlows::Flow* flow, Nanos now);
  // Enters the waiting grant if its keys have come now.
  void UseWaiting(SendFlows::Flow* flow, Nanos now);
  void ReceiveFenced(ChannelId channel, const frames::Fenced& fenced, Nanos now);
  void ReceiveRegion(ChannelId channel, const std::shared_ptr<const Region>& region, Nanos now);
  void ReceiveBye(ChannelId channel, const frames::Bye& bye, Nanos now);
  void WatchChannels(Nanos now);
  void PeerIsSilent(Nanos now);
  // Closes the connection, because it is swallowed or the peer broke the protocol on it. It is opened again, with other ports and perhaps
  // another path.
  void CloseOob(Nanos now) {
    Add(SessionAction::Kind::kCloseOob);
    OobDown(ProbeResult::kSilent, now);
  }
  void ProbePeer(Nanos now);
  void CheckLost(Nanos now);
  void CheckFlows(Nanos now);
  void EndFlow(FlowId id, Nanos now);
  void EndClosing(Nanos now);
  void Arrived(std::span<const FlowArrivals> arrivals, Nanos now);
  bool AckThrough(SendFlows::Flow* flow, MessageId through, Nanos now);
  void FailFlow(SendFlows::Flow* flow, std::string error, plan::Failure failure = plan::Failure::kUnknown);
  void FailAll(const std::string& error, plan::Failure failure);
  void Garbled(ChannelId channel, Nanos now);

  const Options options_;
  std::string peer_node_;
  RemoteRegions regions_;
  // The newest grant of each flow whose keys have not come, and the channel on which it came.
  struct Waiting {
    ChannelId channel;
    FlowReport grant;
  };
  std::map<FlowId, Waiting> waiting_;
  SendFlows flows_;
  FailureDetector detector_;
  std::vector<SessionAction> actions_;
  FaultWatch faults_{&actions_, &flows_};
  ControlQueue control_queue_{&actions_};
  SendLinks links_;
  FencedParts fenced_parts_;
  std::vector<FlowId> closing_;
  OobWatch oob_;
  Nanos probed_ = 0;
  Nanos ticked_ = 0;
  bool peer_stopped_ = false;  // as far as its out-of-band channel shows
  Nanos forsaken_since_ = 0;   // since when there is no flow, and no channel; 0: there is one
  Nanos unreachable_ = 0;      // for how long no link has been up although the peer was not merely stopped
  bool failed_ = false;
  bool warned_silent_ = false;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_LINK_SEND_SESSION_H_
