// What a session's links do as time passes: what the kernel says of them is judged, and what is due happens.
#include <algorithm>
#include <utility>
#include <vector>

#include "netplugin/flow/mutant.h"
#include "netplugin/flow/tuning.h"
#include "netplugin/link/send_links.h"

namespace r2cc::net {
namespace {

using plan::EvidenceCause;

}  // namespace

// ---- what the kernel says ----

void SendLinks::Rate(LinkId id, Incarnation incarnation, uint64_t delivered_bytes, Nanos busy, bool limited, bool bulk, Nanos now) {
  if (id >= links_.size() || links_[id].incarnation != incarnation || links_[id].state != InitiatorState::kUp) return;
  Link& link = links_[id];
  // A channel may wait behind the bulk of its own rail: while that moves, nobody is silent.
  if (delivered_bytes > link.delivered_bytes) session_.detector->Delivered(id, now);
  if (bulk && link.sampled != 0 && delivered_bytes >= link.delivered_bytes && busy >= link.busy)
    rates_.Sample(id, delivered_bytes - link.delivered_bytes, busy - link.busy, limited);
  shares_[id].rate_bytes_per_s = rates_.rate_bytes_per_s(id);
  link.delivered_bytes = delivered_bytes;
  link.busy = busy;
  link.sampled = now;
}

void SendLinks::Progress(LinkId id, Incarnation incarnation, std::span<const PathFacts> paths, Nanos now) {
  if (id >= links_.size() || links_[id].incarnation != incarnation || links_[id].state == InitiatorState::kIdle) return;
  Link& link = links_[id];
  std::vector<PathFacts> others(IsActive(Mutant::kOthersProgress) ? paths.size() : 0);
  for (size_t i = 0; i < others.size(); ++i) {
    others[i] = paths[i];
    for (const Link& other : links_) others[i].delivered_bytes += other.delivered_bytes;
  }
  link.progress.Sample(others.empty() ? paths : std::span<const PathFacts>(others), now);
  const LinkProgress::Stall& stall = link.progress.stall();
  if (link.state == InitiatorState::kUp) session_.detector->Unacknowledged(id, stall.since, stall.confirmed);
}

void SendLinks::Stalled(LinkId id, Nanos now) {
  if (links_[id].state == InitiatorState::kUp) Step(id, InitiatorEvent::kTrouble, links_[id].progress.Diagnose(false).cause, now);
}

// ---- time ----

void SendLinks::AgeDrained(Nanos answering, Nanos limit, Nanos now) {
  const auto carries = [this](const Link& link) { return link.state == InitiatorState::kUp && rails_.WeightPermille(link.rails) > 0; };
  const bool other_way = std::any_of(links_.begin(), links_.end(), carries);
  for (LinkId i = 0; i < links_.size(); ++i) {
    Link& link = links_[i];
    const bool drained = other_way && link.state == InitiatorState::kUp && rails_.WeightPermille(link.rails) == 0;
    const auto holds = [&link](const auto& entry) { return entry.second.ledger.Holds(link.epoch); };
    if (!drained || std::none_of(session_.flows->all().begin(), session_.flows->all().end(), holds)) {
      link.draining = 0;
    } else if ((link.draining += answering) >= limit) {
      link.draining = 0;
      Step(i, InitiatorEvent::kTrouble, EvidenceCause::kPageNotice, now);
    }
  }
}

void SendLinks::JudgeRates(Nanos now) {
  std::vector<bool> slow(links_.size());
  for (LinkId i = 0; i < links_.size(); ++i) slow[i] = rates_.slow(i);
  const bool changed = rates_.Judge();
  if (changed) RefreshShares();
  const bool again = !changed && now - slow_reported_ >= tuning::kReportEvery;
  if (changed || again) slow_reported_ = now;
  for (LinkId i = 0; i < links_.size(); ++i) {
    const bool report = changed ? slow[i] || rates_.slow(i) : again && rates_.slow(i) && links_[i].state == InitiatorState::kUp;
    if (!report) continue;
    SessionAction& action = Add(SessionAction::Kind::kLinkSlow, i);
    action.number = rates_.SharePermille(i);
    action.again = again;
  }
}

void SendLinks::Tick(Nanos now) {
  for (LinkId i = 0; i < links_.size(); ++i) {
    const Link& link = links_[i];
    const bool proving = link.state == InitiatorState::kProving;
    const Nanos limit = link.retry.attempt_limit();
    const Nanos most = proving && link.progress.bulk_delivered() ? std::max(limit, tuning::kUnreadMost) : limit;
    if ((proving || link.state == InitiatorState::kConnecting) && now - link.since >= most)
      Step(i, InitiatorEvent::kTrouble, link.progress.Diagnose(proving).cause, now);
  }
  JudgeRates(now);
  ApplyVerdicts(now);
}

}  // namespace r2cc::net
