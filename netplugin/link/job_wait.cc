// What the sessions know of the job's requests.
#include "netplugin/link/job_wait.h"

#include <algorithm>
#include <vector>

#include "netplugin/link/recv_session.h"
#include "netplugin/link/send_session.h"

namespace r2cc::net {

using plan::WaitFor;

std::vector<LinkId> SendLinks::Holding() const {
  std::vector<LinkId> holding;
  const FlowMap<SendFlows::Flow>& flows = static_cast<const SendFlows*>(session_.flows)->all();
  for (LinkId link = 0; link < links_.size(); ++link) {
    const PathEpoch epoch = links_[link].epoch;
    const auto holds = [epoch](const auto& entry) { return entry.second.ledger.Holds(epoch); };
    if (links_[link].state == InitiatorState::kUp && std::any_of(flows.begin(), flows.end(), holds)) holding.push_back(link);
  }
  return holding;
}

JobRequests SendSession::Requests() const {
  JobRequests requests;
  for (const auto& [id, flow] : flows_.all()) {
    if (flow.state == SendFlows::State::kFailed || flow.closing) continue;
    requests.outstanding += flow.ledger.posted_through() - flow.ledger.done_through();
    requests.done += flow.ledger.done_through();
  }
  return requests;
}

JobWait SendSession::WaitsFor() const {
  if (!links_.any_up()) return {WaitFor::kReach, {}};
  if (warned_silent_) return {WaitFor::kStopped, {}};
  const std::vector<LinkId> holding = links_.Holding();
  if (holding.empty()) return {WaitFor::kBuffer, {}};
  if (holding.size() > 1) return {WaitFor::kRails, {}};
  return {WaitFor::kRail, holding.front()};
}

JobRequests RecvSession::Requests() const {
  JobRequests requests;
  flows_.ForEach([&](const RecvFlows::Flow& flow) {
    if (!flow.error.empty()) return;
    requests.outstanding += flow.ledger.posted_through() - flow.ledger.placed_through();
    requests.done += flow.ledger.placed_through();
  });
  return requests;
}

JobWait RecvSession::WaitsFor(Nanos now) const {
  // Links are the sender's to give up: one that is up here says nothing. The peer's kernel does not answer either.
  const bool vanished = !control_queue_.up(kOobChannel) && probe_ == ProbeResult::kSilent && now - last_received_ >= options_.silence;
  if (!links_.any_up() || vanished) return {WaitFor::kReach, {}};
  return {OobSilent(now) ? WaitFor::kStopped : WaitFor::kData, {}};
}

}  // namespace r2cc::net
