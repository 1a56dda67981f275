// The initiator's end of the way from one process to another: flows, links, fences and replays. Pure: events in, actions out, time as
// an argument; one thread at a time.
//
// Bulk travels from the initiator (the sender's process) to the acceptor only; control frames both ways. A process that also receives
// from its peer has a second session with the roles exchanged.
#ifndef R2CC_NETPLUGIN_LINK_SEND_SESSION_H_
#define R2CC_NETPLUGIN_LINK_SEND_SESSION_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/core/clock.h"
#include "netplugin/flow/send_ledger.h"
#include "netplugin/flow/stripe.h"
#include "netplugin/link/action.h"
#include "netplugin/link/courier.h"
#include "netplugin/link/lane_watch.h"
#include "netplugin/link/link_table.h"

namespace r2cc::net {

class SendSession {
 public:
  struct Options {
    uint16_t local_rails = 1;
    uint32_t chunk_base_bytes = 128 * 1024;
    Nanos silence = 250 * kNanosPerMs;
    Nanos deadline = 30 * kNanosPerSecond;
    StripeMode mode = StripeMode::kBalance;
    std::string peer;  // for messages, until the peer has said its name
  };
  SendSession(const Options& options, Nanos now);

  // ---- the job ----

  FlowId OpenFlow(uint64_t listen_id, uint16_t local_rail, Nanos now);
  enum class FlowState { kOpening, kOpen, kFailed };
  FlowState state(FlowId flow) const;
  // One line, if state is kFailed.
  const std::string& error(FlowId flow) const;
  // The buffer must stay until AckedThrough() passes the returned id or CloseFlow() returned.
  MessageId Post(FlowId flow, const void* data, uint64_t bytes, Nanos now);
  MessageId AckedThrough(FlowId flow) const;
  // The transport must already have ended the links that are half-way through a chunk of this flow.
  void CloseFlow(FlowId flow, Nanos now);
  size_t open_flows() const { return flows_.size(); }

  // ---- lanes and links ----

  // The peer answered on the out-of-band lane. The first time this decides the links: link k joins local rail k mod L and remote rail
  // k mod R.
  void OobUp(const std::string& peer_node, uint16_t remote_rails, Nanos now);
  // `refused`: nobody listens at the peer's address any more.
  void OobDown(bool refused, Nanos now);
  void LinkConnected(LinkId link, Incarnation incarnation, Nanos now);
  void LinkTrouble(LinkId link, Incarnation incarnation, plan::EvidenceCause cause, Nanos now);
  // The process's own link monitor.
  void LocalRail(uint16_t rail, bool up, Nanos now);
  // The page's word on the link: `failed` if either end's NIC is, and the smaller weight of both.
  void SetVerdict(LinkId link, bool failed, uint16_t weight_permille, Nanos now);
  void Receive(Lane lane, const Frame& frame, Nanos now);
  // At least every 10 ms while anything is outstanding, and after all pending input was read.
  void Tick(Nanos now);

  // The next chunk for a link with room; false if there is none, or if this link may not carry more at the moment.
  bool Pull(LinkId link, Incarnation incarnation, Chunk* chunk);
  // What the link has carried, in proportion to its weight: of links with room, the least loaded one pulls first.
  double Load(LinkId link) const { return LoadOf(shares_[link]); }

  std::vector<Action> TakeActions() { return std::exchange(actions_, {}); }

  // ---- for the transport and the record ----

  uint16_t links() const { return static_cast<uint16_t>(links_.size()); }
  uint16_t local_rail(LinkId link) const { return links_[link].local_rail; }
  uint16_t remote_rail(LinkId link) const { return links_[link].remote_rail; }
  InitiatorState link_state(LinkId link) const { return links_[link].state; }
  Incarnation incarnation(LinkId link) const { return links_[link].incarnation; }
  bool outstanding() const;
  // No flow is open and no frame waits for an answer: the session may end.
  bool idle() const { return flows_.empty() && courier_.idle(); }
  bool failed() const { return failed_; }

 private:
  struct Flow {
    FlowState state = FlowState::kOpening;
    LinkId home = 0;
    uint16_t local_rail = 0;
    std::string error;
    std::unique_ptr<SendLedger> ledger;
    uint64_t turn = 0;  // when it last began a message
  };
  struct Link {
    uint16_t local_rail = 0;
    uint16_t remote_rail = 0;
    InitiatorState state = InitiatorState::kIdle;
    Incarnation incarnation = 0;
    Carrier carrier = 0;
    bool failed_verdict = false;
    Nanos since = 0;     // of the state
    Nanos retry_at = 0;  // kIdle: not before
    Nanos back_off = 0;
  };
  // An incarnation whose arrivals are not known yet.
  struct Fence {
    LinkId link;
    Incarnation incarnation;
    Carrier carrier;
    plan::EvidenceCause cause;
    Nanos since;
  };
  Action& Add(Action::Kind kind) { return actions_.emplace_back(Action{.kind = kind}); }
  void LaneLost(Lane lane, Nanos now);

  void Step(LinkId link, InitiatorEvent event, plan::EvidenceCause cause, Nanos now);
  void CloseLink(LinkId link, Nanos now);
  void Reclaim(const Fence& fence, const std::vector<FlowArrivals>& arrivals, Nanos now);
  void ReceiveFenced(const Frame& frame, Nanos now);
  void RefreshShares();
  bool OtherWay(LinkId link) const;
  bool Shunned(LinkId link) const { return links_[link].failed_verdict && OtherWay(link); }
  void ApplyVerdicts(Nanos now);
  void TryLinks(Nanos now);
  void WatchLanes(Nanos now);
  void CheckLost(Nanos now);
  void FailFlow(Flow* flow, std::string error);
  void FailAll(const std::string& error);
  void Garbled(Lane lane, Nanos now);
  LinkId HomeLink(uint16_t local_rail) const;
  Carrier NewCarrier();

  const Options options_;
  std::string peer_node_;
  std::map<FlowId, Flow> flows_;
  FlowId next_flow_ = 1;
  uint64_t order_ = 1;
  uint64_t turns_ = 0;
  std::vector<Link> links_;
  std::vector<LinkShare> shares_;
  std::vector<bool> local_rail_up_;
  std::vector<Fence> fences_;
  LaneWatch watch_;
  std::vector<Action> actions_;
  Courier courier_{&actions_};
  Carrier next_carrier_ = 0;
  bool oob_opening_ = false;
  bool oob_refused_ = false;
  Nanos oob_retry_at_ = 0;
  Nanos oob_back_off_ = 0;
  Nanos no_link_since_ = 0;  // no link has been up since; 0: one is
  plan::EvidenceCause last_cause_ = plan::EvidenceCause::kNone;
  bool failed_ = false;
  bool warned_silent_ = false;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_LINK_SEND_SESSION_H_
