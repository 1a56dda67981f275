#include "netplugin/plugin/pending_connects.h"

#include <utility>

namespace r2cc::net {

std::unique_ptr<SendComm> PendingConnects::Take(uint64_t listen_id) {
  const MutexLock lock(mutex_);
  auto found = pending_.extract(listen_id);
  return found.empty() ? nullptr : std::move(found.mapped().comm);
}

void PendingConnects::Put(uint64_t listen_id, std::unique_ptr<SendComm> comm, Nanos now) {
  // Its peer knows it: if there is no place for it, it stays for ever.
  SendComm* const raw = comm.release();
  const MutexLock lock(mutex_);
  Pending& pending = pending_[listen_id];
  pending.comm.reset(raw);
  pending.asked = now;
}

std::vector<std::unique_ptr<SendComm>> PendingConnects::TakeAbandoned(Nanos now) {
  std::vector<std::unique_ptr<SendComm>> abandoned;
  const MutexLock lock(mutex_);
  for (auto it = pending_.begin(); it != pending_.end();) {
    Pending& pending = it->second;
    if (now - pending.asked < kAbandonedAfter || pending.comm->state.load(std::memory_order_acquire) != Comm::State::kFailed) {
      ++it;
      continue;
    }
    abandoned.push_back(std::move(pending.comm));
    it = pending_.erase(it);
  }
  return abandoned;
}

}  // namespace r2cc::net
