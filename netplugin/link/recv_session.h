// The acceptor's end of the way from one process to another: posted buffers, grants, acknowledgements, and the fence itself. Pure:
// events in, actions out, time as an argument; one thread at a time.
#ifndef R2CC_NETPLUGIN_LINK_RECV_SESSION_H_
#define R2CC_NETPLUGIN_LINK_RECV_SESSION_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/core/clock.h"
#include "netplugin/flow/recv_ledger.h"
#include "netplugin/link/action.h"
#include "netplugin/link/courier.h"
#include "netplugin/link/link_table.h"

namespace r2cc::net {

class RecvSession {
 public:
  struct Options {
    uint16_t links = 1;
    uint16_t local_rails = 1;
    Nanos deadline = 30 * kNanosPerSecond;
    std::string peer;  // its node's name
  };
  RecvSession(const Options& options, Nanos now);

  // ---- the job ----

  // Answers to kFlowOpened.
  void AcceptFlow(FlowId flow, Nanos now);
  void RefuseFlow(FlowId flow);
  // The buffer must stay until PlacedThrough() passes the returned id or CloseFlow() returned.
  MessageId Post(FlowId flow, void* data, uint64_t capacity_bytes, Nanos now);
  MessageId PlacedThrough(FlowId flow) const;
  uint64_t SizeOf(FlowId flow, MessageId message) const;
  // Empty while the flow can go on; else one line.
  const std::string& error(FlowId flow) const;
  // Call only when no socket is half-way through a chunk into a buffer of this flow. Its acknowledgements outlive it.
  void CloseFlow(FlowId flow, Nanos now);
  size_t open_flows() const { return flows_.size(); }

  // ---- lanes and links ----

  void OobUp(Nanos now);
  void OobDown(Nanos now);
  void PeerProbed(bool refused, Nanos now);
  // A socket of `link`'s `incarnation` was greeted. False: that incarnation was ended already, refuse the socket.
  bool Greet(LinkId link, Incarnation incarnation, Nanos now);
  void LaneUp(LinkId link, Incarnation incarnation, Nanos now);
  void LinkTrouble(LinkId link, Incarnation incarnation, plan::EvidenceCause cause, Nanos now);
  // The process's own link monitor, or the page; `link`'s rail here.
  void LocalLink(LinkId link, bool up, Nanos now);
  // The page's word on the link.
  void SetVerdict(LinkId link, bool failed, Nanos now);
  void Receive(Lane lane, const Frame& frame, Nanos now);
  // The data check of all bulk sockets of the incarnation has been read.
  void Proved(LinkId link, Incarnation incarnation, bool ok);
  void Tick(Nanos now);
  // Sends the grants and acknowledgements that have come together since the last call.
  void Flush();

  // ---- bulk ----

  // False: the link is not (or no longer) at this incarnation, or broke the protocol: end it.
  bool Begin(LinkId link, Incarnation incarnation, const Chunk& header, std::byte** destination);
  // The chunk is in place. True if messages of the flow have become whole.
  bool Finish(LinkId link, Incarnation incarnation, const Chunk& header);

  std::vector<Action> TakeActions() { return std::exchange(actions_, {}); }

  uint16_t links() const { return static_cast<uint16_t>(links_.size()); }
  Incarnation incarnation(LinkId link) const { return links_[link].incarnation; }
  bool link_up(LinkId link) const { return links_[link].state == AcceptorState::kUp; }
  bool outstanding() const;
  bool idle() const { return flows_.empty() && courier_.idle(); }
  bool failed() const { return failed_; }
  bool any_lane() const { return courier_.any_up(); }

 private:
  struct Flow {
    LinkId home = 0;
    std::unique_ptr<RecvLedger> ledger;
    MessageId granted_through = 0;  // told since the last suspicion
    MessageId acked_through = 0;    // likewise
    bool acks_again = false;
    std::string error;
  };
  struct Link {
    AcceptorState state = AcceptorState::kDown;
    Incarnation incarnation = 0;  // the newest ever greeted or fenced
    bool rail_up = true;
    bool failed_verdict = false;
  };
  Action& Add(Action::Kind kind) { return actions_.emplace_back(Action{.kind = kind}); }
  void Step(LinkId link, AcceptorEvent event, Incarnation incarnation, plan::EvidenceCause cause, Lane lane, Nanos now);
  void End(LinkId link, Nanos now);
  Frame Fenced(LinkId link, Incarnation incarnation, plan::EvidenceCause cause) const;
  void Suspicion(Nanos now);
  bool OtherWay(LinkId link) const;
  void ApplyVerdicts(Nanos now);
  void CheckLost(Nanos now);
  void FailAll(const std::string& error);

  const Options options_;
  std::map<FlowId, Flow> flows_;
  std::map<FlowId, MessageId> closed_;  // placed through, until the initiator confirmed the BYE
  std::vector<Link> links_;
  std::vector<Action> actions_;
  Courier courier_{&actions_};
  Nanos no_link_since_;
  Nanos probed_ = 0;
  bool failed_ = false;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_LINK_RECV_SESSION_H_
