#include "netplugin/link/send_links.h"

#include <algorithm>
#include <utility>

#include "netplugin/flow/mutant.h"
#include "netplugin/flow/tuning.h"

namespace r2cc::net {
namespace {

using plan::EvidenceCause;

uint64_t DetailOf(const LinkProgress& progress, EvidenceCause cause, bool proving) {
  const LinkFault fault = progress.Diagnose(proving);
  return fault.cause == cause ? fault.detail : 0;
}

}  // namespace

SendLinks::SendLinks(std::vector<TransportSet> local_transports, const Session& session, InitiatorObserver observer, Nanos now)
    : session_(session), observer_(std::move(observer)), rails_(std::move(local_transports)), none_since_(now) {}

void SendLinks::SetRemoteRails(std::span<const RailInfo> remote_rails, Nanos now) {
  const std::vector<uint16_t> moved = rails_.SetRemoteRails(remote_rails);
  if (known()) {
    // An attempt that is under way goes to where the rail was.
    for (const uint16_t rail : moved) RemoteRailUp(rail, now);
    return;
  }
  if (remote_rails.empty()) return;
  home_count_ = std::min<uint16_t>(std::max(rails_.local_count(), rails_.remote_count()), kLinksMax / 2);
  for (LinkId i = 0; i < 2 * home_count_; ++i) links_.emplace_back(RetryPolicy(session_.retry_seed, i));
  shares_.resize(links_.size());
  rates_ = RateEstimator(links_.size());
  session_.regions->set_rails(rails_.remote_count());
  session_.control_queue->set_links(links_.size());
  for (LinkId i = 0; i < links_.size(); ++i) {
    links_[i].since = now;
    shares_[i].home = is_home(i);
    if (is_home(i)) links_[i].rails = {static_cast<uint16_t>(i % rails_.local_count()), static_cast<uint16_t>(i % rails_.remote_count())};
  }
  for (auto& [id, flow] : session_.flows->all()) flow.home = HomeLink(flow.local_rail);
  RefreshShares();
  TryLinks(now);
}

LinkId SendLinks::HomeLink(uint16_t local_rail) const {
  for (LinkId link = 0; link < home_count_; ++link)
    if (links_[link].rails.local == local_rail) return link;
  return 0;
}

bool SendLinks::any_up() const {
  return std::any_of(links_.begin(), links_.end(), [](const Link& link) { return link.state == InitiatorState::kUp; });
}

SessionAction& SendLinks::Add(SessionAction::Kind kind, LinkId link) {
  SessionAction& action = session_.actions->emplace_back(SessionAction{.kind = kind});
  action.link = link;
  action.incarnation = links_[link].incarnation;
  return action;
}

// ---- events ----

void SendLinks::Connected(LinkId id, Incarnation incarnation, Nanos now) {
  if (id >= links_.size() || links_[id].incarnation != incarnation || links_[id].state != InitiatorState::kConnecting) return;
  session_.control_queue->Up(id);
  session_.detector->Up(id, now);
  Step(id, InitiatorEvent::kConnected, EvidenceCause::kNone, now);
}

void SendLinks::Trouble(LinkId id, Incarnation incarnation, EvidenceCause cause, Nanos now) {
  if (id < links_.size() && links_[id].incarnation == incarnation) Step(id, InitiatorEvent::kTrouble, cause, now);
}

void SendLinks::Proved(LinkId id, Incarnation incarnation, bool ok, Nanos now) {
  if (id >= links_.size() || links_[id].incarnation != incarnation || links_[id].state != InitiatorState::kProving) return;
  Step(id, ok ? InitiatorEvent::kProved : InitiatorEvent::kTrouble, ok ? EvidenceCause::kNone : EvidenceCause::kGarbled, now);
}

void SendLinks::PeerEnds(const frames::Fenced& fenced, Nanos now) {
  const Link& link = links_[fenced.link];
  if (fenced.incarnation == link.incarnation && link.state == InitiatorState::kUp)
    NoteLost(fenced.link, {.cause = static_cast<EvidenceCause>(fenced.cause)}, link.since, now);
}

void SendLinks::NoteLost(LinkId id, const LinkFault& why, Nanos up_since, Nanos now) {
  if (why.cause == EvidenceCause::kRetired || why.cause == EvidenceCause::kFlowClosed) return;
  // A link that comes back while the page still forbids it has carried next to nothing since.
  if (why.cause == EvidenceCause::kPageNotice && links_[id].incarnation > 1 && now - up_since < kNanosPerSecond) return;
  session_.faults->Lost(id, links_[id].incarnation, links_[id].epoch, why, now);
}

void SendLinks::Fenced(const frames::Fenced& fenced, Nanos now) {
  Link& link = links_[fenced.link];
  const Incarnation ended = IsActive(Mutant::kFenceStale) ? link.incarnation : fenced.incarnation;
  if (const auto cause = static_cast<EvidenceCause>(fenced.cause); ended == link.incarnation) {
    // The peer's own word on its own rail; the answer to a fence of ours only repeats what we said.
    if (cause == EvidenceCause::kLinkDown && link.state != InitiatorState::kIdle) rails_.SetRemoteUp(link.rails.remote, false);
    Step(fenced.link, InitiatorEvent::kPeerFenced, cause, now);
  }
  session_.control_queue->AnsweredThrough(FrameType::kFence, fenced.link, fenced.incarnation);
  for (const OpenFences::Fence& fence : fences_.TakeAnswered(fenced.link, ended)) {
    const uint64_t replay_bytes = session_.flows->Reclaim(fence.epoch);
    session_.faults->Answered(fence.link, fence.incarnation, now);
    SessionAction& action = Add(SessionAction::Kind::kLinkFenced, fence.link);
    action.incarnation = fence.incarnation;
    action.report = {fence.fault.cause, fence.fault.detail, replay_bytes, now - fence.since, fence.since};
  }
}

void SendLinks::LocalRail(uint16_t rail, bool up, Nanos now) {
  if (rail >= rails_.local_count()) return;
  rails_.SetLocalUp(rail, up);
  for (LinkId i = 0; i < links_.size(); ++i) {
    Link& link = links_[i];
    if (link.rails.local != rail) continue;
    if (!up && (is_home(i) || link.state != InitiatorState::kIdle))
      Step(i, InitiatorEvent::kTrouble, EvidenceCause::kLinkDown, now);
    else if (up && link.state == InitiatorState::kIdle)
      link.retry.Restart(now);
  }
  TryLinks(now);
}

void SendLinks::RemoteRailUp(uint16_t rail, Nanos now) {
  // A copy of the word must not end the attempt that the first one began.
  if (rail >= rails_.remote_count() || !rails_.ReportedUp(rail, now)) return;
  for (LinkId i = 0; i < home_count_; ++i) {
    Link& link = links_[i];
    if (link.rails.remote != rail) continue;
    // An attempt made while the rail was down may sit in the kernel's own back-off: begin it anew.
    if (link.state == InitiatorState::kConnecting) Step(i, InitiatorEvent::kTrouble, EvidenceCause::kNone, now);
    if (link.state == InitiatorState::kIdle) link.retry.Restart(now);
  }
  TryLinks(now);
}

void SendLinks::LocalVerdict(uint16_t rail, RailVerdict verdict, Nanos now) {
  if (rail < rails_.local_count() && rails_.SetLocalVerdict(rail, verdict)) VerdictChanged(now);
}

void SendLinks::RemoteVerdict(uint16_t rail, RailVerdict verdict, Nanos now) {
  if (rail < rails_.remote_count() && rails_.SetRemoteVerdict(rail, verdict)) VerdictChanged(now);
}

void SendLinks::VerdictChanged(Nanos now) {
  for (LinkId i = 0; i < home_count_; ++i) {
    Link& link = links_[i];
    if (link.state == InitiatorState::kIdle && !rails_.Failed(link.rails)) link.retry.Hasten(now);
  }
  RefreshShares();
  ApplyVerdicts(now);
}

// ---- verdicts, tries, cross-rail links ----

bool SendLinks::OtherWay(LinkId id) const {
  for (LinkId other = 0; other < links_.size(); ++other)
    if (other != id && links_[other].state == InitiatorState::kUp && !rails_.Failed(links_[other].rails)) return true;
  return false;
}

void SendLinks::ApplyVerdicts(Nanos now) {
  for (LinkId i = 0; i < links_.size(); ++i)
    if (links_[i].state != InitiatorState::kIdle && Avoided(i)) Step(i, InitiatorEvent::kTrouble, EvidenceCause::kPageNotice, now);
  TryLinks(now);
}

void SendLinks::TryLinks(Nanos now) {
  if (stopped_) return;
  if (!demand_.all()) demand_.Judge(*session_.flows, Homes(), rails_);
  const bool none = !any_up();
  for (LinkId i = 0; i < home_count_; ++i) {
    Link& link = links_[i];
    // A rail that flaps is kept out, but not if it is the last one.
    if (none && had_link_) link.retry.IgnoreDamping(link.since);
    if (link.state == InitiatorState::kIdle && link.retry.IsDue(now) && rails_.local_up(link.rails.local) && rails_.Joinable(link.rails) &&
        !Avoided(i) && demand_.Wants(*session_.flows, i))
      Step(i, InitiatorEvent::kTry, EvidenceCause::kNone, now);
  }
  OpenCrossRailLinks(now);
}

std::vector<HomeState> SendLinks::Homes() const {
  std::vector<HomeState> homes;
  for (LinkId i = 0; i < home_count_; ++i) {
    const Link& link = links_[i];
    const bool up = link.state == InitiatorState::kUp;
    // A link that has not failed yet is not lost: it is being opened for the first time.
    const bool tried = link.retry.has_failed() || !rails_.Joinable(link.rails) || !rails_.local_up(link.rails.local) ||
                       !rails_.remote_up(link.rails.remote);
    homes.push_back({link.rails, up, !up && tried});
  }
  return homes;
}

void SendLinks::OpenCrossRailLinks(Nanos now) {
  if (!known()) return;
  const bool last_way = !any_up();
  const auto [free_local, free_remote] = RailsForCrossRail(Homes(), rails_.LocalWorks(last_way), rails_.RemoteWorks(last_way));
  if (free_local.empty() || free_remote.empty()) return;
  std::vector<RailPair> present;
  for (LinkId i = home_count_; i < links_.size(); ++i)
    if (links_[i].state != InitiatorState::kIdle) present.push_back(links_[i].rails);
  const auto turn = [&](RailPair pair) -> std::optional<Nanos> {
    const auto home = [&](const Link& link) { return link.rails == pair; };
    if (std::any_of(links_.begin(), links_.begin() + home_count_, home)) return std::nullopt;
    if (!rails_.Joinable(pair) || (rails_.path_broken(pair) && !last_way)) return std::nullopt;
    return pairs_.Turn(pair, last_way, now);
  };
  LinkId place = home_count_;
  for (const RailPair& pair : ChooseCrossRailLinks(free_local, free_remote, present, turn)) {
    while (place < links_.size() && links_[place].state != InitiatorState::kIdle) ++place;
    if (place == links_.size()) return;
    if (std::exchange(links_[place].rails, pair) != pair) rates_.Clear(place);
    Step(place, InitiatorEvent::kTry, EvidenceCause::kNone, now);
  }
}

void SendLinks::RetireCrossRailLinks(Nanos now) {
  const std::vector<HomeState> homes = Homes();
  for (LinkId i = home_count_; i < links_.size(); ++i)
    if (links_[i].state != InitiatorState::kIdle && IsRetired(links_[i].rails, homes))
      Step(i, InitiatorEvent::kTrouble, EvidenceCause::kRetired, now);
}

PathEpoch SendLinks::NewPathEpoch() {
  for (;;) {
    const PathEpoch epoch = next_epoch_++;
    const auto used = [epoch](const Link& link) { return link.epoch == epoch; };
    if (IsPathEpoch(epoch) && std::none_of(links_.begin(), links_.end(), used) && !fences_.Uses(epoch)) return epoch;
  }
}

void SendLinks::RefreshShares() {
  for (LinkId i = 0; i < links_.size(); ++i) {
    const Link& link = links_[i];
    shares_[i].usable = link.state == InitiatorState::kUp;
    shares_[i].weight_permille = rails_.WeightPermille(link.rails);
    shares_[i].carried_bytes = 0;
    shares_[i].slow = rates_.slow(i);
    shares_[i].rate_bytes_per_s = rates_.rate_bytes_per_s(i);
  }
  spread_ = Spread(shares_);
}

// ---- the table's actions ----

void SendLinks::Step(LinkId id, InitiatorEvent event, EvidenceCause cause, Nanos now) {
  Link& link = links_[id];
  const InitiatorState before = link.state;
  if (observer_) observer_(id, before, event);
  const InitiatorStep step = Next(before, event);
  const Nanos was_since = link.since;
  link.state = step.next;
  if (before != step.next) link.since = now;
  if (cause != EvidenceCause::kNone && cause != EvidenceCause::kRetired) {
    last_cause_ = cause;
    if (link.lost_by == EvidenceCause::kNone) link.lost_by = cause, link.lost = now;
  }
  switch (step.action) {
    case InitiatorAction::kNone: return;
    case InitiatorAction::kConnect:
      ++link.incarnation;
      link.progress.Begin();
      link.retry.Began();
      link.epoch = NewPathEpoch();
      return void(Add(SessionAction::Kind::kOpenLink, id));
    case InitiatorAction::kProve: return void(Add(SessionAction::Kind::kProveLink, id));
    case InitiatorAction::kStart: return Start(id, now);
    case InitiatorAction::kBackOff: return BackOff(id, cause, before == InitiatorState::kProving, now);
    case InitiatorAction::kFence: return EndPath(id, true, cause, was_since, now);
    case InitiatorAction::kReclaim: return EndPath(id, false, cause, was_since, now);
  }
}

std::vector<LinkFate> SendLinks::Fates() const {
  std::vector<LinkFate> fates;
  for (const Link& link : std::span(links_).first(home_count_))
    if (link.state != InitiatorState::kUp) fates.push_back({link.rails.local, link.rails.remote, link.lost_by, link.lost});
  return fates;
}

RailUse SendLinks::Use(Nanos now) const {
  RailUse use;
  for (const Link& link : links_)
    use.Add(link.rails.local, link.state == InitiatorState::kUp, link.lost_by == EvidenceCause::kNone ? 0 : now - link.lost);
  return use;
}

void SendLinks::Start(LinkId id, Nanos now) {
  Link& link = links_[id];
  link.lost_by = EvidenceCause::kNone;
  shares_[id].free_at = 0;
  link.delivered_bytes = 0;
  link.busy = link.sampled = 0;
  rails_.SetRemoteUp(link.rails.remote, true);
  if (const auto kind = rails_.TransportOf(link.rails)) session_.regions->SetLink(id, link.rails.local, link.rails.remote, *kind);
  pairs_.Worked(link.rails);
  had_link_ = true;
  none_since_ = 0;
  if (is_home(id)) RetireCrossRailLinks(now);
  RefreshShares();
  Add(SessionAction::Kind::kLinkUp, id);
  ApplyVerdicts(now);
}

void SendLinks::BackOff(LinkId id, EvidenceCause cause, bool was_proving, Nanos now) {
  Link& link = links_[id];
  link.retry.AttemptFailed(now);
  // A cross-rail link fails wherever the fabric is rail-only: that is no fault.
  if (!is_home(id)) pairs_.Failed(link.rails, now);
  if (is_home(id) && cause != EvidenceCause::kNone && cause != EvidenceCause::kPeerFenced &&
      now - link.refused_reported >= tuning::kReportEvery) {
    link.refused_reported = now;
    Add(SessionAction::Kind::kLinkRefused, id).report = {.cause = cause, .detail = DetailOf(link.progress, cause, was_proving)};
  }
  Close(id, now);
  // No chunk was in flight on it, but the acceptor may have it for a link that is up, and for a way that is left.
  AskFence(id, EvidenceCause::kNone, now);
}

void SendLinks::AskFence(LinkId id, EvidenceCause cause, Nanos now) {
  if (stopped_) return;
  const Incarnation incarnation = links_[id].incarnation;
  // The answer for a later incarnation is one for all before it.
  session_.control_queue->AnsweredThrough(FrameType::kFence, id, incarnation);
  const frames::Fence fence{.link = id, .incarnation = incarnation, .cause = static_cast<uint32_t>(cause)};
  session_.control_queue->SendUntilAnswered({FrameType::kFence, id, incarnation}, fence, id, true, now);
}

void SendLinks::EndPath(LinkId id, bool ask, EvidenceCause cause, Nanos was_since, Nanos now) {
  Link& link = links_[id];
  const bool in_order = cause == EvidenceCause::kRetired || cause == EvidenceCause::kFlowClosed;
  const auto loss = in_order                           ? RetryPolicy::Loss::kRetired
                    : cause == EvidenceCause::kStalled ? RetryPolicy::Loss::kStall
                                                       : RetryPolicy::Loss::kFlap;
  link.retry.Lost(now - was_since, loss, now);
  rates_.Forget(id);
  RefreshShares();
  if (!any_up() && none_since_ == 0) none_since_ = now;
  const LinkFault fault{cause, DetailOf(link.progress, cause, false)};
  fences_.Add({.link = id, .incarnation = link.incarnation, .epoch = link.epoch, .fault = fault, .since = now});
  NoteLost(id, fault, was_since, now);
  if (IsActive(Mutant::kFenceMissing)) session_.flows->Reclaim(link.epoch);
  Close(id, now);
  if (ask) AskFence(id, cause, now);
}

void SendLinks::Close(LinkId id, Nanos now) {
  Add(SessionAction::Kind::kCloseLink, id);
  session_.control_queue->Down(id);
  session_.detector->Down(id);
  session_.control_queue->Resend(now);
}

// ---- carrying ----

bool SendLinks::Pull(LinkId id, Incarnation incarnation, Chunk* chunk, Nanos now) {
  if (id >= links_.size() || links_[id].incarnation != incarnation || links_[id].state != InitiatorState::kUp) return false;
  if (!session_.flows->Pull(shares_, id, links_[id].epoch, chunk, now)) return false;
  Pulled(shares_, id, chunk->bytes, now);
  return true;
}

bool SendLinks::PullsBefore(LinkId a, LinkId b, Nanos now) const {
  const Nanos finish_a = FinishAt(shares_, a, tuning::kChunkBytesBase, now), finish_b = FinishAt(shares_, b, tuning::kChunkBytesBase, now);
  return finish_a != finish_b ? finish_a < finish_b : LoadOf(shares_[a]) < LoadOf(shares_[b]);
}

}  // namespace r2cc::net
