#include "netplugin/transport/peer.h"

#include "netplugin/flow/tuning.h"
#include "netplugin/link/transport_choice.h"
#include "netplugin/transport/memory_table.h"
#include "netplugin/transport/record.h"

namespace r2cc::net {
namespace {

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

Peer::Peer(Host* host, const SessionKey& key) : host_(host), now_(host->Now()) {
  for (Transport* const transport : host->transports) {
    std::unique_ptr<Port> port;
    if (transport == host->oob_transport) {
      auto oob = host->oob_transport->NewOobPort(key, &state_);
      oob_port_ = oob.get();
      port = std::move(oob);
    } else {
      port = transport->NewPort(key, &state_);
    }
    has_workers_ |= port->has_workers();
    port_of_[static_cast<size_t>(transport->kind())] = port.get();
    ports_.push_back(std::move(port));
  }
}

void Peer::RailsAnnounced(std::span<const RailInfo> rails, const std::string& node) {
  const bool all = AllByVerbs(host_->RailInfos(), rails);
  by_devices_.store(all, std::memory_order_relaxed);
  if (const std::string line = UnlikeFamilies(EndsOf(*host_, host_->RailInfos()), EndsOf(*host_, rails), node); !line.empty())
    host_->log(LogLevel::kWarn, line);
  if (!all && host_->memory != nullptr && host_->memory->promised())
    host_->log(LogLevel::kWarn, "R2CC: not all rails to peer " + node + " use RDMA: messages to and from it in the memory of a GPU are" +
                                    " copied through host memory");
}

void Peer::Lock() {
  mutex_.Lock();
  now_ = host_->Now();
}

bool Peer::TryLock() {
  if (!mutex_.TryLock()) return false;
  now_ = host_->Now();
  return true;
}

// Who left it has seen that the lock was taken, and we see what he left.
bool Peer::TryLockForLeft() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return waiting_.load() && TryLock();
}

void Peer::Submit(FlowId flow, const Buffer& buffer, uint64_t bytes) {
  const Request request{flow, buffer, bytes};
  if (TryLock()) return RunAsJob(flow, &request);
  {
    const MutexLock lock(inbox_mutex_);
    inbox_.push_back(request);
    waiting_.store(true);
  }
  // Whoever has the lock looks at the inbox when it has given it back; who gave it back before that leaves it to us.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (TryLock()) RunAsJob(flow, nullptr);
}

void Peer::Progress(FlowId flow) {
  if (bulk_by_workers() && !more() && host_->Now() - polled_.load(std::memory_order_relaxed) < tuning::kPollWithWorkers) return;
  if (TryLock()) RunAsJob(flow, nullptr);
}

void Peer::RunAsJob(FlowId flow, const Request* request) {
  bool waits = request == nullptr;
  do {
    const MutexLock lock(mutex_, std::adopt_lock);
    try {
      RunJobOnce(flow, waits, request);
    } catch (...) {
      state_.jobs_thread = false;
      taken_.clear();
      BreakFlows();
      throw;
    }
    request = nullptr;
    waits = false;
  } while (TryLockForLeft());
}

void Peer::RunJobOnce(FlowId flow, bool waits, const Request* request) {
  progress_calls_.store(progress_calls_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  state_.jobs_thread = true;
  bool moved = RunInbox();
  if (!shut_) {
    if (request != nullptr) Hint(request->bytes);
    if (request != nullptr) Post(request->flow, request->buffer, request->bytes);
    moved = moved || request != nullptr || incomplete_;
    const Moved found = Move(flow, waits);
    // An idle look costs as little as can be: who waits for a message comes back at once.
    if (found != Moved::kNothing || moved || more()) {
      incomplete_ = found == Moved::kFound && !moved && PublishFound();
      if (!incomplete_) Complete();
    }
  }
  state_.jobs_thread = false;
}

bool Peer::Service() {
  if (!TryLock()) return false;
  const MutexLock lock(mutex_, std::adopt_lock);
  RunInbox();
  if (shut_) return true;
  polled_.store(0, std::memory_order_relaxed);
  Move(0, false);
  Complete();
  return true;
}

void Peer::LockSoon() {
  for (int i = 0; i < tuning::kTriesForLock; ++i) {
    if (TryLock()) return;
    for (int k = 0; k < tuning::kPausesOfTry; ++k) Pause();
  }
  Lock();
}

bool Peer::RunWithLock(FunctionRef<bool()> report, FunctionRef<bool(bool posted)> ask) {
  LockSoon();
  {
    const MutexLock lock(mutex_, std::adopt_lock);
    const bool posted = RunInbox();
    if (shut_) return false;
    if (report() || posted) Complete();
    // It comes back when its call has ended. Nothing that waits for that may be done here.
    if (!shut_ && ask(posted)) return true;
  }
  while (TryLockForLeft()) {
    const MutexLock lock(mutex_, std::adopt_lock);
    if (RunInbox() && !shut_) Complete();
  }
  return true;
}

void Peer::Tick() {
  const PeerLock lock(*this);
  if (shut_) return;
  RunInbox();
  for (const auto& port : ports_) port->WatchAll();
  PollAndTick();
  Complete();
}

bool Peer::Poll() {
  polled_.store(now(), std::memory_order_relaxed);
  bool all = true;
  for (const auto& port : ports_) all &= port->Poll();
  return all;
}

// Silence is judged when everything that has arrived was read; a control channel of which more is to be read has just been heard.
void Peer::PollAndTick() {
  now_ = host_->Now();
  if (!Poll()) return;
  ticked_ = now();
  OnTick();
}

bool Peer::RunInbox() {
  if (!waiting_.load(std::memory_order_acquire)) return false;
  {
    const MutexLock lock(inbox_mutex_);
    taken_.swap(inbox_);
    waiting_.store(false);
  }
  // After the end requests come to nothing; their comms have failed.
  for (const Request& request : taken_) {
    if (shut_) break;
    Hint(request.bytes);
    Post(request.flow, request.buffer, request.bytes);
  }
  taken_.clear();
  return true;
}

Nanos Peer::PollEvery(bool waits) const {
  if (!waits) return tuning::kPollPosting;
  if (bulk_by_workers()) return tuning::kPollWithWorkers;
  // Small messages keep to their sockets: while they come, nothing is missed on others.
  return !has_bulk() && now() - found_ < tuning::kPollWaiting ? tuning::kPollPosting : tuning::kPollWaiting;
}

Peer::Moved Peer::Move(FlowId flow, bool waits) {
  if (waits && FastPath(flow)) {
    found_ = now();
    return Moved::kFound;
  }
  if (now() - ticked_ >= tuning::kTickEvery) {
    PollAndTick();
    return Moved::kSomething;
  }
  if (now() - polled_.load(std::memory_order_relaxed) < PollEvery(waits)) return Moved::kNothing;
  Poll();
  return Moved::kSomething;
}

void Peer::Shut() {
  if (shut_) return;
  CloseAll();
  shut_ = true;
}

}  // namespace r2cc::net
