#include "netplugin/link/fault_watch.h"

#include <algorithm>
#include <utility>

#include "netplugin/flow/tuning.h"

namespace r2cc::net {
namespace {

// Losses of links that nothing has passed yet. Older ones of a link that flaps are forgotten, and never passed.
constexpr size_t kFaultsMost = 256;

}  // namespace

void FaultWatch::Lost(LinkId link, Incarnation incarnation, PathEpoch epoch, const LinkFault& why, Nanos now) {
  Fault fault{.link = link, .incarnation = incarnation, .why = why, .lost = now};
  const auto same = [&](const Fault& known) { return known.link == link && known.incarnation == incarnation; };
  if (std::any_of(faults_.begin(), faults_.end(), same)) return;
  const auto is_open = [](const auto& entry) { return entry.second.state != SendFlows::State::kFailed && !entry.second.closing; };
  if (std::none_of(flows_->all().begin(), flows_->all().end(), is_open)) return;
  for (const auto& [id, flow] : flows_->all()) {
    if (flow.state == SendFlows::State::kFailed) continue;
    const MessageId acked = flow.ledger.acked_through();
    MessageId through = flow.ledger.HeldThrough(epoch);
    // Acknowledgements and grants come by the flow's home link.
    if (flow.home == link && flow.ledger.posted_through() > acked) through = std::max(through, acked + 1);
    if (through <= acked) continue;
    const bool grant = flow.ledger.granted_through() == acked && flow.ledger.HeldThrough(epoch) == 0;
    fault.held.push_back({id, through, flow.progressed == 0 ? now : flow.progressed, grant});
  }
  if (faults_.size() >= kFaultsMost) faults_.erase(faults_.begin());
  faults_.push_back(std::move(fault));
}

void FaultWatch::Answered(LinkId link, Incarnation incarnation, Nanos now) {
  for (Fault& fault : faults_) {
    if (fault.link != link || fault.incarnation != incarnation) continue;
    Report(&fault);
    fault.answered = now;
  }
  ReportPassed();
}

void FaultWatch::Tick(Nanos now) {
  for (Fault& fault : faults_)
    if (now - fault.lost >= tuning::kReportEvery) Report(&fault);
}

void FaultWatch::End(bool gone) {
  if (!gone)
    for (Fault& fault : faults_) Report(&fault);
  faults_.clear();
}

void FaultWatch::Report(Fault* fault) {
  if (std::exchange(fault->reported, true)) return;
  SessionAction& action = actions_->emplace_back(SessionAction{.kind = SessionAction::Kind::kLinkLost});
  action.link = fault->link;
  action.incarnation = fault->incarnation;
  action.report = {.cause = fault->why.cause, .detail = fault->why.detail, .since = fault->lost};
}

void FaultWatch::Pass(const SendFlows::Flow& flow, Nanos now) {
  for (Fault& fault : faults_) {
    if (fault.held.empty()) {
      // It held nothing: the job's next progress is past it.
      fault.passed |= fault.answered != 0;
      continue;
    }
    std::erase_if(fault.held, [&](Held& held) {
      if (held.flow != flow.id) return false;
      if (now - held.since > fault.gap) {
        fault.gap = now - held.since;
        fault.gap_end = now;
        fault.gap_flow = flow.id;
      }
      held.since = now;
      return flow.ledger.acked_through() >= held.through;
    });
    fault.passed = fault.held.empty();
  }
  ReportPassed();
}

// The receiver says again what it has said when a link is lost. So a grant that comes much later was not lost: the job posted no buffer.
void FaultWatch::EndWaitForGrant(const SendFlows::Flow& flow, Nanos now) {
  for (Fault& fault : faults_) {
    const bool late = fault.answered != 0 && now - fault.answered > tuning::kResendAfter;
    std::erase_if(fault.held, [&](Held& held) { return held.flow == flow.id && std::exchange(held.grant, false) && late; });
  }
}

void FaultWatch::ReportPassed() {
  std::erase_if(faults_, [this](const Fault& fault) {
    if (fault.answered == 0 || !fault.passed) return false;
    SessionAction& action = actions_->emplace_back(SessionAction{.kind = SessionAction::Kind::kLinkPassed});
    action.link = fault.link;
    action.incarnation = fault.incarnation;
    action.flow = fault.gap_flow;
    action.report = {.duration = fault.gap, .since = fault.lost, .until = fault.gap_end == 0 ? fault.lost : fault.gap_end};
    return true;
  });
}

void FaultWatch::Closed(const SendFlows::Flow& flow, bool in_order, Nanos now) {
  if (faults_.empty()) return;
  if (!in_order) return Failed(flow);
  // The peer has all of it, perhaps by an answer that came before the loss was noticed: that is progress past the loss.
  Pass(flow, now);
}

void FaultWatch::Failed(const SendFlows::Flow& flow) {
  std::erase_if(faults_, [&](Fault& fault) {
    if (std::none_of(fault.held.begin(), fault.held.end(), [&](const Held& held) { return held.flow == flow.id; })) return false;
    Report(&fault);
    return true;
  });
}

}  // namespace r2cc::net
