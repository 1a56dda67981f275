#include "netplugin/flow/recv_flows.h"

#include <algorithm>
#include <utility>

#include "netplugin/flow/mutant.h"
#include "netplugin/flow/tuning.h"

namespace r2cc::net {
RecvFlows::Flow* RecvFlows::Open(FlowId id, LinkId home) {
  Flow* flow = flows_.Add(id, id, memory_);
  flow->home = home;
  return flow;
}

void RecvFlows::Close(FlowId id) {
  if (IsActive(Mutant::kLateWrite)) return;
  const Flow* const flow = Find(id);
  closed_[id] = flow->ledger.placed_through();
  std::erase(touched_, flow);
  std::erase(changed_, id);
  flows_.Erase(id);
}

void RecvFlows::TouchPosted(Flow* flow) {
  if (!std::exchange(flow->touched, true)) touched_.push_back(flow);
}

void RecvFlows::Touch(Flow* flow) {
  TouchPosted(flow);
  if (!std::exchange(flow->changed, true)) changed_.push_back(flow->id);
}

void RecvFlows::Fail(Flow* flow, std::string error) {
  if (!flow->error.empty()) return;
  flow->error = std::move(error);
  Touch(flow);
}

void RecvFlows::FailAll(const std::string& error) {
  closed_.clear();
  for (auto& [id, flow] : flows_) Fail(&flow, error);
}

std::span<const FlowId> RecvFlows::TakeChanged() {
  for (const FlowId id : changed_) flows_.Find(id)->changed = false;
  taken_.swap(changed_);
  changed_.clear();
  return taken_;
}

const RecvFlows::Flow* RecvFlows::WithSlot(uint32_t slot, uint32_t slots) const {
  const auto it = std::find_if(flows_.begin(), flows_.end(), [&](const auto& entry) { return entry.first % slots == slot; });
  return it == flows_.end() ? nullptr : &it->second;
}

bool RecvFlows::FindBySlot(uint32_t slot, uint32_t slots, FlowId* flow, MessageId* placed_through) const {
  // Numbers are the peer's: as many looks as there are flows, whatever they are.
  const Flow* found = nullptr;
  for (const auto& [id, one] : flows_) {
    if (id % slots != slot) continue;
    if (found != nullptr) return false;
    found = &one;
  }
  if (found == nullptr) return false;
  *flow = found->id;
  *placed_through = found->ledger.placed_through();
  return true;
}

bool RecvFlows::awaited() const {
  return std::any_of(touched_.begin(), touched_.end(), [](const Flow* flow) {
    const RecvLedger& ledger = flow->ledger;
    const bool credit_low = ledger.placed_through() >= flow->acked_through + EagerWindowLowAt(kEagerWindow);
    return flow->repeat || ledger.awaited_through() > flow->acked_through || flow->wanted_through > flow->granted_through || credit_low;
  });
}

bool RecvFlows::outstanding() const {
  return std::any_of(flows_.begin(), flows_.end(), [](const auto& entry) {
    return entry.second.error.empty() && entry.second.ledger.posted_through() > entry.second.ledger.placed_through();
  });
}

void RecvFlows::RepeatReports() {
  if (IsActive(Mutant::kNotResent)) return;
  for (auto& [id, flow] : flows_) {
    flow.repeat = true;
    Touch(&flow);
  }
}

void RecvFlows::Flush(Nanos now) {
  for (size_t i = 0; i < touched_.size();) {
    if (Report(touched_[i], now)) {
      touched_[i]->touched = false;
      touched_[i] = touched_.back();
      touched_.pop_back();
    } else {
      ++i;
    }
  }
}

bool RecvFlows::Report(Flow* flow, Nanos now) {
  const RecvLedger& ledger = flow->ledger;
  const MessageId placed = ledger.placed_through();
  const MessageId posted = ledger.posted_through();
  const uint64_t to_ack = placed > flow->acked_through ? placed - flow->acked_through : 0;
  const uint64_t to_grant = posted > flow->granted_through ? posted - flow->granted_through : 0;
  if (to_ack == 0 && to_grant == 0 && !flow->repeat) {
    flow->ack_due_since = 0;
    return true;
  }
  if (flow->ack_due_since == 0) flow->ack_due_since = now;
  if (now - flow->ack_due_since < AckDelay(*flow, to_ack, to_grant)) return false;
  FlowReport report{.flow = flow->id, .placed_through = placed, .grants = to_grant > 0 || flow->repeat};
  if (report.grants) report.capacities = ledger.Capacities();
  if (report.grants && generations_ != nullptr) report.places = ledger.Places(*generations_);
  if (IsActive(Mutant::kAckBeforePlacement) && !report.grants) report.placed_through = std::max(placed, posted);
  const bool dropped = IsActive(Mutant::kGrantDropped) && to_grant > 0 && posted % 4 == 0;
  if (!dropped && !reports_->Report(std::move(report), flow->home)) return false;
  flow->acked_through = placed;
  flow->granted_through = posted;
  flow->repeat = false;
  flow->ack_due_since = 0;
  return true;
}

Nanos RecvFlows::AckDelay(const Flow& flow, uint64_t to_ack, uint64_t to_grant) const {
  if (flow.repeat || (to_grant > 0 && flow.wanted_through > flow.granted_through)) return 0;
  const RecvLedger& ledger = flow.ledger;
  const uint64_t placed = ledger.placed_through();
  const bool large_comes = !ledger.last_eager() || flow.wanted_through > placed;
  const bool large = ledger.awaited_through() > flow.acked_through || (to_grant > 0 && large_comes);
  // A sender of small messages has copies of them, and credit: it waits for neither.
  if (!large) return std::max(to_ack, to_grant) >= tuning::kSmallTogether ? 0 : tuning::kSmallTogetherFor;
  if (!whole_) return 0;
  const uint64_t grants_left = flow.granted_through > placed ? flow.granted_through - placed : 0;
  const bool may_send_on = grants_left >= (to_grant > 0 ? tuning::kGrantsEnough : 1);
  return may_send_on && to_ack < tuning::kLargeTogether ? tuning::kLargeTogetherFor : 0;
}

void RecvFlows::Drop(PathEpoch epoch) {
  for (auto& [id, flow] : flows_) flow.ledger.Drop(epoch);
}

std::vector<FlowArrivals> RecvFlows::Arrivals() const {
  std::vector<FlowArrivals> arrivals;
  arrivals.reserve(flows_.size() + closed_.size());
  for (const auto& [id, flow] : flows_) arrivals.push_back(flow.ledger.Arrivals());
  for (const auto& [id, placed_through] : closed_) arrivals.push_back({id, placed_through, {}});
  return arrivals;
}

}  // namespace r2cc::net
