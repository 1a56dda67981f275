// The links of a session at the initiator's end: their lives, fences, shares and cross-rail links. Pure: events in, actions out, time as an
// argument.
#ifndef R2CC_NETPLUGIN_LINK_SEND_LINKS_H_
#define R2CC_NETPLUGIN_LINK_SEND_LINKS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/core/clock.h"
#include "base/core/function_ref.h"
#include "netplugin/flow/send_flows.h"
#include "netplugin/flow/stripe.h"
#include "netplugin/link/action.h"
#include "netplugin/link/control_queue.h"
#include "netplugin/link/cross_rail.h"
#include "netplugin/link/failure_detector.h"
#include "netplugin/link/fault_watch.h"
#include "netplugin/link/link_demand.h"
#include "netplugin/link/link_progress.h"
#include "netplugin/link/link_table.h"
#include "netplugin/link/open_fences.h"
#include "netplugin/link/rail_use.h"
#include "netplugin/link/rate_estimator.h"
#include "netplugin/link/remote_regions.h"
#include "netplugin/link/retry_policy.h"
#include "netplugin/link/send_link_input.h"
#include "netplugin/link/session_rails.h"

namespace r2cc::net {

// Told of every step of a link's table, for tests that count them.
using InitiatorObserver = std::function<void(LinkId, InitiatorState, InitiatorEvent)>;

class SendLinks final : public SendLinkInput {
 public:
  // The parts of the session that links work with; they outlive the links.
  struct Session {
    std::vector<SessionAction>* actions;
    ControlQueue* control_queue;
    FailureDetector* detector;
    SendFlows* flows;
    RemoteRegions* regions;
    FaultWatch* faults;
    uint64_t retry_seed = 0;  // see RetryPolicy
    bool all_links = true;    // at once; see LinkDemand
  };
  // `local_transports`: of each rail of this node.
  SendLinks(std::vector<TransportSet> local_transports, const Session& session, InitiatorObserver observer, Nanos now);

  // The peer's rails are known: from now on there are links. Home link k < H joins local rail k mod L and remote rail k mod R, H being
  // the larger of L and R; links H to 2H-1 are places for cross-rail links, whose rails are decided when they are opened. Rails without a
  // transport in common are not joined. Told again, with the same number of rails, it tries those anew that are found elsewhere now.
  void SetRemoteRails(std::span<const RailInfo> remote_rails, Nanos now);

  // A flow was opened, or posted what several links should carry: see LinkDemand.
  void FlowOpened(Nanos now) {
    if (!demand_.all()) TryLinks(now);
  }
  void WantAll(Nanos now) {
    if (demand_.all()) return;
    demand_.WantAll();
    TryLinks(now);
  }

  void Connected(LinkId link, Incarnation incarnation, Nanos now) override;
  void Trouble(LinkId link, Incarnation incarnation, plan::EvidenceCause cause, Nanos now);
  // A verdict that does not depend on the incarnation.
  void Trouble(LinkId link, plan::EvidenceCause cause, Nanos now) { Step(link, InitiatorEvent::kTrouble, cause, now); }
  void Proved(LinkId link, Incarnation incarnation, bool ok, Nanos now);
  // The peer has ended an incarnation, and what it has of it is not known to the flows yet: what they waited for ends with that.
  void PeerEnds(const frames::Fenced& fenced, Nanos now);
  // All parts of the answer have come, of an incarnation that there has been, and the flows know what has arrived.
  void Fenced(const frames::Fenced& fenced, Nanos now);
  void LocalRail(uint16_t rail, bool up, Nanos now);
  void RemoteRailUp(uint16_t rail, Nanos now);
  // The peer answers again after it was stopped or out of reach. The back-off of attempts that it could not answer says nothing now.
  void PeerIsBack(Nanos now) {
    for (Link& link : links_) link.retry.Hasten(now);
    TryLinks(now);
  }
  void LocalVerdict(uint16_t rail, RailVerdict verdict, Nanos now) override;
  void RemoteVerdict(uint16_t rail, RailVerdict verdict, Nanos now) override;
  void PathVerdict(RailPair rails, bool broken, Nanos now) override {
    if (rails_.SetPathBroken(rails, broken)) VerdictChanged(now);
  }
  void Rate(LinkId link, Incarnation incarnation, uint64_t delivered_bytes, Nanos busy, bool limited, bool bulk, Nanos now) override;
  void Progress(LinkId link, Incarnation incarnation, std::span<const PathFacts> paths, Nanos now) override;
  // Data of the link is unacknowledged for the silence, while the peer answers.
  void Stalled(LinkId link, Nanos now);
  void Tick(Nanos now);
  // See OpenFences.
  void AgeFences(Nanos answering, Nanos deadline, FunctionRef<void(LinkId, PathEpoch)> expired) {
    fences_.Age(answering, deadline, expired);
  }
  // The peer answers, and has done so for `answering` since the last call. A link that the plan allows no traffic is given up if it still
  // holds chunks after `limit` of that, as long as another link carries.
  void AgeDrained(Nanos answering, Nanos limit, Nanos now);
  // See SendFlows.
  void AgeStranded(Nanos answering, Nanos deadline, FunctionRef<void(SendFlows::Flow*)> expired) {
    session_.flows->AgeStranded(shares_, answering, deadline, expired);
  }
  // After what the flows want of their links may have changed; what each has carried counts from now on.
  void RefreshShares();
  // The peer is gone: nothing is opened any more.
  void Stop() { stopped_ = true; }

  // The next chunk for a link with room; false if there is none, or if this link leaves it to others.
  bool Pull(LinkId link, Incarnation incarnation, Chunk* chunk, Nanos now);
  // A message of a flow that is at home on the link: see SendFlows.
  bool PostEagerly(LinkId home, Incarnation incarnation, SendFlows::Flow* flow, const Buffer& from, uint64_t bytes, Chunk* chunk) {
    if (spread() || home >= links_.size() || links_[home].incarnation != incarnation || !IsFull(shares_[home])) return false;
    if (!session_.flows->PostEagerly(flow, from, bytes, links_[home].epoch, chunk)) return false;
    shares_[home].carried_bytes += bytes;
    return true;
  }
  // How many chunks it could pull now, counted up to `most`.
  uint32_t ReadyChunks(LinkId link, uint32_t most, Nanos now) const { return session_.flows->ReadyChunks(shares_, link, most, now); }
  // Small messages may travel before they are granted: wherever they go, the receiver places.
  bool eager() const { return !rails_.any_placed_by_sender(); }
  // Nothing: its rails cannot be joined.
  std::optional<TransportKind> TransportOf(LinkId link) const { return rails_.TransportOf(links_[link].rails); }
  // Of links with room the one that finishes first pulls first, and of equal ones that which has carried less for its weight.
  bool PullsBefore(LinkId a, LinkId b, Nanos now) const;
  // False: each flow's chunks travel on its home link only.
  bool spread() const { return spread_ || session_.flows->dealing(); }
  // While it is busy; 0: not known.
  double rate_bytes_per_s(LinkId link) const { return rates_.rate_bytes_per_s(link); }

  bool known() const { return !links_.empty(); }
  uint16_t count() const { return static_cast<uint16_t>(links_.size()); }
  uint16_t home_count() const { return home_count_; }
  bool is_home(LinkId link) const { return link < home_count_; }
  uint16_t local_rail(LinkId link) const { return links_[link].rails.local; }
  uint16_t remote_rail(LinkId link) const { return links_[link].rails.remote; }
  InitiatorState state(LinkId link) const { return links_[link].state; }
  Incarnation incarnation(LinkId link) const { return links_[link].incarnation; }
  // The home link of a local rail.
  LinkId HomeLink(uint16_t local_rail) const;
  bool any_up() const;
  // No link has been up since; 0: one is.
  Nanos none_since() const { return none_since_; }
  plan::EvidenceCause last_cause() const { return last_cause_; }
  // Of the home links that are not up.
  std::vector<LinkFate> Fates() const;
  // Whose chunks are on their way to the peer.
  std::vector<LinkId> Holding() const;
  // Of all links, cross-rail ones too.
  RailUse Use(Nanos now) const;

 private:
  struct Link {
    explicit Link(const RetryPolicy& policy) : retry(policy) {}
    RailPair rails;
    InitiatorState state = InitiatorState::kIdle;
    Incarnation incarnation = 0;
    PathEpoch epoch = 0;
    Nanos since = 0;                                           // of the state
    plan::EvidenceCause lost_by = plan::EvidenceCause::kNone;  // what it was lost by first since it was up
    Nanos lost = 0;
    LinkProgress progress;
    Nanos draining = 0;  // for how long the plan has allowed it no traffic while it held chunks and the peer answered
    Nanos refused_reported = -kNanosPerSecond;  // when it was last reported that an attempt failed
    RetryPolicy retry;                          // kIdle: when it is due
    // The kernel's account of this incarnation, as far as it was used.
    uint64_t delivered_bytes = 0;
    Nanos busy = 0;
    Nanos sampled = 0;
  };
  SessionAction& Add(SessionAction::Kind kind, LinkId link);
  void Step(LinkId link, InitiatorEvent event, plan::EvidenceCause cause, Nanos now);
  void Start(LinkId link, Nanos now);
  void BackOff(LinkId link, plan::EvidenceCause cause, bool was_proving, Nanos now);
  void NoteLost(LinkId link, const LinkFault& why, Nanos up_since, Nanos now);
  void EndPath(LinkId link, bool ask, plan::EvidenceCause cause, Nanos was_since, Nanos now);
  void AskFence(LinkId link, plan::EvidenceCause cause, Nanos now);
  void Close(LinkId link, Nanos now);
  bool OtherWay(LinkId link) const;
  bool Avoided(LinkId link) const { return rails_.Failed(links_[link].rails) && OtherWay(link); }
  void VerdictChanged(Nanos now);
  void ApplyVerdicts(Nanos now);
  void TryLinks(Nanos now);
  void OpenCrossRailLinks(Nanos now);
  void RetireCrossRailLinks(Nanos now);
  std::vector<HomeState> Homes() const;
  void JudgeRates(Nanos now);
  PathEpoch NewPathEpoch();

  const Session session_;
  const InitiatorObserver observer_;
  SessionRails rails_;
  LinkDemand demand_{session_.all_links};
  uint16_t home_count_ = 0;
  std::vector<Link> links_;
  std::vector<LinkShare> shares_;
  bool spread_ = false;  // Spread(shares_)
  OpenFences fences_;
  BackOffTable pairs_;
  RateEstimator rates_{0};
  Nanos slow_reported_ = 0;
  PathEpoch next_epoch_ = 0;
  Nanos none_since_;
  bool had_link_ = false;
  bool stopped_ = false;
  plan::EvidenceCause last_cause_ = plan::EvidenceCause::kNone;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_LINK_SEND_LINKS_H_
