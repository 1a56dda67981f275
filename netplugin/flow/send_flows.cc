#include "netplugin/flow/send_flows.h"

#include <algorithm>

#include "netplugin/flow/mutant.h"

namespace r2cc::net {

SendFlows::Flow* SendFlows::Open(uint32_t slots) {
  if (slots > 0) {
    if (flows_.size() >= slots) return nullptr;
    std::vector<bool> taken(slots);
    for (const auto& [id, flow] : flows_) taken[id % slots] = true;
    while (taken[next_id_ % slots]) ++next_id_;
  }
  const FlowId id = next_id_++;
  return flows_.Add(id, id, limits_, &order_, &pool_);
}

void SendFlows::Close(FlowId id) {
  SetDealt(id, false);
  std::erase(ready_, Find(id));
  std::erase(changed_, id);
  flows_.Erase(id);
}

bool SendFlows::SetWeight(FlowId id, double weight) {
  Flow* const flow = Find(id);
  if (flow == nullptr || !(weight >= kWeightLeast && weight <= kWeightMost)) return false;
  if (IsActive(Mutant::kWeightIgnored)) return true;
  // It is ahead by its last message at most: by so many bytes, whatever its weight is now.
  const double clock = clocks_[flow->clock];
  if (flow->served > clock) flow->served = clock + (flow->served - clock) * flow->weight / weight;
  flow->weight = weight;
  return true;
}

void SendFlows::SetDealt(FlowId id, bool dealt) {
  Flow* const flow = Find(id);
  if (flow == nullptr || flow->dealt == dealt) return;
  flow->dealt = dealt;
  dealt ? ++dealt_ : --dealt_;
  CountDealing(flow);
}

void SendFlows::CountDealing(Flow* flow) {
  const bool dealing = flow->dealt && flow->state != State::kFailed && flow->ledger.posted_through() > flow->ledger.acked_through();
  if (dealing == flow->dealing) return;
  flow->dealing = dealing;
  dealing ? ++dealing_ : --dealing_;
}

void SendFlows::Note(Flow* flow) {
  Change(flow);
  if (!flow->ready && flow->ledger.NextReady().any) {
    flow->ready = true;
    ready_.push_back(flow);
  }
}

void SendFlows::Fail(Flow* flow, std::string error, bool logged) {
  flow->state = State::kFailed;
  flow->logged = logged;
  flow->error = std::move(error);
  Note(flow);
}

std::span<const FlowId> SendFlows::TakeChanged() {
  for (const FlowId id : changed_) flows_.Find(id)->changed = false;
  taken_.swap(changed_);
  changed_.clear();
  return taken_;
}

bool SendFlows::outstanding() const {
  return std::any_of(flows_.begin(), flows_.end(), [](const auto& entry) {
    const Flow& flow = entry.second;
    return flow.state != State::kFailed && flow.ledger.posted_through() > flow.ledger.acked_through();
  });
}

bool SendFlows::Expects(const Chunk& chunk) const {
  const Flow* const flow = flows_.Find(chunk.flow);
  return flow != nullptr && chunk.message >= flow->ledger.acked_through();
}

bool SendFlows::MayCarry(const Flow& flow, const SendLedger::Ready& ready, std::span<const LinkShare> shares, LinkId link,
                         Moment* moment) const {
  if (!ready.any || flow.state == State::kFailed || link >= shares.size() || !shares[link].usable) return false;
  if (ready.region != 0 && !IsActive(Mutant::kKeyMissing)) {
    if (!Reaches(ready, link)) return false;
    shares = Reaching(ready, shares);
  }
  if (ready.eager && deals()) return SmallMessageLink(shares, flow.home) == link;
  const bool striped = Stripes(shares);
  if (!Carries(shares, mode_, striped, flow.home, link)) return false;
  if (!striped) return true;
  const std::optional<Nanos> until = LeavesUntil(shares, link, ready.chunk_bytes, moment->ready_bytes, moment->now);
  if (!until) return false;
  if (*until <= moment->now || (others_finish_at_ && moment->now >= *others_finish_at_)) return true;
  moment->others_finish_at = std::min(*until, moment->others_finish_at.value_or(*until));
  return false;
}

uint64_t SendFlows::ReadyBytes() const {
  uint64_t bytes = 0;
  for (const Flow* flow : ready_) bytes += flow->ledger.ready_bytes();
  return bytes;
}

// A message's links are those that reach its buffer: who does not is as good as down for it.
std::span<const LinkShare> SendFlows::Reaching(const SendLedger::Ready& ready, std::span<const LinkShare> shares) const {
  reaching_.assign(shares.begin(), shares.end());
  for (size_t link = 0; link < shares.size(); ++link)
    if (shares[link].usable && !Reaches(ready, static_cast<LinkId>(link))) reaching_[link].usable = false;
  return reaching_;
}

uint32_t SendFlows::ReadyChunks(std::span<const LinkShare> shares, LinkId link, uint32_t most, Nanos now) const {
  uint32_t chunks = 0;
  Moment moment{.now = now, .ready_bytes = ReadyBytes()};
  for (const Flow* flow : ready_) {
    if (chunks >= most) break;
    if (MayCarry(*flow, flow->ledger.NextReady(), shares, link, &moment)) chunks += flow->ledger.ReadyChunks(most - chunks);
  }
  return chunks;
}

bool SendFlows::Pull(std::span<const LinkShare> shares, LinkId link, PathEpoch epoch, Chunk* chunk, Nanos now) {
  if (ready_.empty()) return false;
  Moment moment{.now = now, .ready_bytes = ReadyBytes()};
  const size_t clock = ClockOf(shares, link);
  if (clock >= clocks_.size()) clocks_.resize(clock + 1);
  const double clock_now = clocks_[clock];
  size_t next_at = 0;
  Flow* next = nullptr;
  double next_start = 0;
  SendLedger::Ready next_ready;
  for (size_t i = 0; i < ready_.size();) {
    Flow* flow = ready_[i];
    const SendLedger::Ready ready = flow->ledger.NextReady();
    if (!ready.any || flow->state == State::kFailed) {
      NotReady(i);
      continue;
    }
    ++i;
    const double start = flow->clock == clock ? std::max(flow->served, clock_now) : clock_now;
    const bool sooner = next == nullptr || (ready.begun != next_ready.begun ? ready.begun
                                            : ready.begun                   ? ready.order < next_ready.order
                                            : start != next_start           ? start < next_start
                                                                            : flow->turn < next->turn);
    if (!sooner || !MayCarry(*flow, ready, shares, link, &moment)) continue;
    next = flow;
    next_start = start;
    next_at = i - 1;
    next_ready = ready;
  }
  if (next == nullptr && !others_finish_at_) others_finish_at_ = moment.others_finish_at;
  if (next == nullptr || !next->ledger.Pull(epoch, chunk)) return false;
  others_finish_at_.reset();
  next->stranded = 0;
  if (!next_ready.begun) Begin(next, clock, next_start, chunk->message_bytes);
  // Whoever asks ready() next need not try.
  if (!next->ledger.NextReady().any) NotReady(next_at);
  return true;
}

// The whole message counts now, as nothing else of the flow begins before all of it has left. So does its header, or a flow of empty
// messages would go before all others for ever.
void SendFlows::Begin(Flow* flow, size_t clock, double start, uint64_t message_bytes) {
  flow->turn = ++turns_;
  flow->clock = clock;
  flow->served = start + static_cast<double>(kHeaderBytes + message_bytes) / flow->weight;
  clocks_[clock] = start;
}

// What goes while nobody waits is at nobody's cost: it is not counted.
bool SendFlows::PostEagerly(Flow* flow, const Buffer& from, uint64_t bytes, PathEpoch epoch, Chunk* chunk) {
  const bool was_idle = flow->ledger.posted_through() == flow->ledger.acked_through();
  if (!ready_.empty() || flow->state != State::kOpen || !flow->ledger.PostEagerly(from, bytes, epoch, chunk)) return false;
  if (was_idle) {
    flow->progressed = 0;
    undated_ = true;
  }
  flow->turn = ++turns_;
  Change(flow);
  return true;
}

void SendFlows::NotReady(size_t at) {
  ready_[at]->ready = false;
  ready_[at] = ready_.back();
  ready_.pop_back();
}

bool SendFlows::Stranded(const Flow& flow, std::span<const LinkShare> shares) const {
  const SendLedger::Ready ready = flow.ledger.NextReady();
  if (!ready.any || ready.region == 0 || flow.state == State::kFailed) return false;
  bool usable = false;
  for (size_t link = 0; link < shares.size(); ++link) {
    if (!shares[link].usable) continue;
    if (Reaches(ready, static_cast<LinkId>(link))) return false;
    usable = true;
  }
  return usable;
}

void SendFlows::AgeStranded(std::span<const LinkShare> shares, Nanos answering, Nanos deadline, FunctionRef<void(Flow*)> expired) {
  any_stranded_ = false;
  if (keys_ == nullptr || !keys_->any()) return;
  std::vector<Flow*> late;
  for (Flow* flow : ready_) {
    const bool stranded = Stranded(*flow, shares);
    any_stranded_ = any_stranded_ || stranded;
    flow->stranded = stranded ? flow->stranded + answering : 0;
    if (flow->stranded >= deadline) late.push_back(flow);
  }
  for (Flow* flow : late) expired(flow);
}

void SendFlows::Arrived(std::span<const FlowArrivals> arrivals) {
  for (const FlowArrivals& arrived : arrivals) {
    Flow* const flow = Find(arrived.flow);
    if (flow == nullptr) continue;
    flow->ledger.Arrived(arrived);
    Note(flow);
  }
}

uint64_t SendFlows::Reclaim(PathEpoch epoch) {
  uint64_t replay_bytes = 0;
  for (auto& [id, flow] : flows_) {
    replay_bytes += flow.ledger.Reclaim(epoch);
    Note(&flow);
  }
  return replay_bytes;
}

}  // namespace r2cc::net
