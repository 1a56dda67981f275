// Manages the links of a session at the acceptor's end: their states, and the answers to fences. Pure: events in, actions out, time as an
// argument.
#ifndef R2CC_NETPLUGIN_LINK_RECV_LINKS_H_
#define R2CC_NETPLUGIN_LINK_RECV_LINKS_H_

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/core/clock.h"
#include "netplugin/flow/recv_flows.h"
#include "netplugin/link/action.h"
#include "netplugin/link/control_queue.h"
#include "netplugin/link/cross_rail.h"
#include "netplugin/link/link_table.h"

namespace r2cc::net {

// Called for every step of a link's table, for tests that count them.
using AcceptorObserver = std::function<void(LinkId, AcceptorState, AcceptorEvent)>;

class RecvLinks {
 public:
  // The parts of the session that links use; they outlive the links.
  struct Session {
    std::vector<SessionAction>* actions;
    ControlQueue* control_queue;
    RecvFlows* flows;
  };
  // Links are numbered as at the initiator's end: see SendLinks::SetRemoteRails(). `peer` is for the log.
  RecvLinks(uint16_t local_rails, uint16_t remote_rails, std::string peer, const Session& session, AcceptorObserver observer, Nanos now);

  // The initiator offers `link`'s `incarnation`, which joins its rail `remote_rail` and our `local_rail`.
  enum class Admission {
    kAccepted,  // it is up: its sockets may be attached
    kRefused,   // it was ended already, or there is no such link
    kLater,     // its predecessor is being closed: offer it again after Closed(). Only the newest offer counts.
  };
  Admission Greet(LinkId link, Incarnation incarnation, uint16_t local_rail, uint16_t remote_rail, Nanos now);
  // The answer to kCloseLink: see action.h.
  void Closed(LinkId link, Incarnation incarnation, bool ok, Nanos now);
  void ChannelOpened(LinkId link, Incarnation incarnation, Nanos now);
  void Trouble(LinkId link, Incarnation incarnation, plan::EvidenceCause cause, Nanos now);
  // The initiator asks on `channel` to end it. False: there is no such link.
  bool Fence(const frames::Fence& fence, ChannelId channel, Nanos now);
  // The data check of all paths of the incarnation.
  void Proved(LinkId link, Incarnation incarnation, bool ok);
  void LocalRail(uint16_t rail, bool up, Nanos now);
  void LocalVerdict(uint16_t rail, bool failed, Nanos now);
  void RemoteVerdict(uint16_t rail, bool failed, Nanos now);
  void PathVerdict(RailPair rails, bool broken, Nanos now) {
    if (broken ? broken_paths_.insert(rails).second : broken_paths_.erase(rails) > 0) ApplyVerdicts(now);
  }
  void ApplyVerdicts(Nanos now);
  // This process's own data to the peer stalls on these rails. The peer's data may stall as well, and that would be noticed only when the
  // job next waits for it. Ends the link if there is another way; its data check decides whether it comes back.
  void RailsStalled(RailPair rails, Nanos now);
  // A FENCED frame with what has arrived by now.
  frames::Fenced Fenced(LinkId link, Incarnation incarnation, plan::EvidenceCause cause) const;
  // The peer is gone: accepts and answers nothing any more.
  void Stop() { stopped_ = true; }

  uint16_t count() const { return static_cast<uint16_t>(links_.size()); }
  uint16_t home_count() const { return home_count_; }
  bool is_home(LinkId link) const { return link < home_count_; }
  bool up(LinkId link) const { return links_[link].state == AcceptorState::kUp; }
  bool is(LinkId link, Incarnation incarnation) const {
    return link < links_.size() && links_[link].incarnation == incarnation && up(link);
  }
  Incarnation incarnation(LinkId link) const { return links_[link].incarnation; }
  uint16_t local_rail(LinkId link) const { return links_[link].rails.local; }
  uint16_t remote_rail(LinkId link) const { return links_[link].rails.remote; }
  bool any_up() const { return none_since_ == 0; }

 private:
  // A FENCED answer, to be sent when the link is closed.
  struct Pending {
    Incarnation incarnation = 0;  // the newest that was asked for; 0: none was
    plan::EvidenceCause cause = plan::EvidenceCause::kNone;
    std::set<ChannelId> channels;  // the channels that asked
    bool report = false;           // this end began it: report it on all channels, until it is confirmed
  };
  struct Link {
    AcceptorState state = AcceptorState::kDown;
    Incarnation incarnation = 0;  // the newest that ever began
    Incarnation barred = 0;       // the newest that was fenced: none up to it may begin
    RailPair rails;               // `local` is this node's
    Pending pending;
  };
  void Step(LinkId link, AcceptorEvent event, Incarnation incarnation, plan::EvidenceCause cause, ChannelId channel, Nanos now);
  void End(LinkId link, Nanos now);
  void Owe(LinkId link, Incarnation incarnation, plan::EvidenceCause cause);
  void SendPending(LinkId link, Nanos now);
  bool FailedVerdict(const RailPair& rails) const {
    return local_failed_[rails.local] || remote_failed_[rails.remote] || broken_paths_.contains(rails);
  }
  bool OtherWay(LinkId link) const;

  const Session session_;
  const AcceptorObserver observer_;
  const std::string peer_;
  const uint16_t home_count_;
  std::vector<Link> links_;
  std::vector<bool> rail_up_;
  std::vector<bool> local_failed_, remote_failed_;  // by rail: the page's word
  std::set<RailPair> broken_paths_;
  Nanos none_since_;
  bool stopped_ = false;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_LINK_RECV_LINKS_H_
