#include "netplugin/transport/send_pump.h"

#include <algorithm>

#include "netplugin/flow/tuning.h"

namespace r2cc::net {
void SendPump::Advise(bool always) {
  if (!always && !advice_is_due()) return;
  // Chunks that one link left to others may be its own now.
  if (advice_is_due()) MarkAllDirty();
  spread_ = session_->links().spread();
  links_->ForEach([this](const LinkName& name, SendLink& link) {
    link.Advise({session_->links().rate_bytes_per_s(name.link), spread_, session_->ChunkBytes(name.link)});
  });
}

bool SendPump::PumpAll(Nanos now) {
  ready_.clear();
  // What was begun goes on first.
  links_->ForEach([this](const LinkName& name, SendLink& link) {
    if (link.Pump(0, false) == SendLink::Room::kLeft) ready_.push_back(name.link);
  });
  for (int chunks = 0; chunks < tuning::kTurnCalls;) {
    if (ready_.empty() || !session_->flows().ready()) return false;
    const auto next =
        std::min_element(ready_.begin(), ready_.end(), [&](LinkId a, LinkId b) { return session_->links().PullsBefore(a, b, now); });
    if (links_->at(*next)->Pump(1, false) == SendLink::Room::kLeft)
      ++chunks;
    else
      ready_.erase(next);
  }
  return true;
}

void SendPump::PumpHome(FlowId flow) {
  SendLink* const link = links_->at(session_->flows().at(flow).home);
  if (link != nullptr && !session_->links().spread() && (session_->flows().ready() || link->busy())) link->Pump(tuning::kTurnCalls, true);
}

void SendPump::MarkDirty(LinkId link) {
  if (session_->links().spread()) return MarkAllDirty();
  dirty_.resize(links_->size());
  if (link < dirty_.size()) dirty_[link] = true;
}

// Who wakes up for nothing has cost two processors something, and the caller's is NCCL's.
void SendPump::OfferToWorkers(Nanos now) {
  if (!session_->flows().ready()) return;
  const bool shared = session_->shared();
  uint32_t coming = 0;
  ready_.clear();
  dirty_.resize(links_->size());
  links_->ForEach([&](const LinkName& name, SendLink& link) {
    if (!all_dirty_ && !dirty_[name.link]) return;
    dirty_[name.link] = false;
    if (!shared) return OfferChunks(std::span(&name.link, 1), link.Coming(), now);
    // One that leaves what is ready to others comes for nothing.
    if (session_->links().ReadyChunks(name.link, 1, now) > 0) coming += link.Coming();
    ready_.push_back(name.link);
  });
  all_dirty_ = false;
  if (!shared) return;
  std::sort(ready_.begin(), ready_.end(), [&](LinkId a, LinkId b) { return session_->links().PullsBefore(a, b, now); });
  OfferChunks(ready_, coming, now);
}

void SendPump::OfferChunks(std::span<const LinkId> links, uint32_t coming, Nanos now) {
  for (const LinkId link : links)
    links_->at(link)->OfferChunks([&](uint32_t chunks) {
      if (session_->links().ReadyChunks(link, coming + 1, now) <= coming) return false;
      coming += chunks;
      return true;
    });
}

}  // namespace r2cc::net
