#include "netplugin/transport/tcp/peer.h"

#include "netplugin/transport/tcp/errand.h"

namespace r2cc::net {
namespace {

// An NCCL thread looks where its message is expected; at all sockets only so often: soon while it waits, seldom on the way of a message.
constexpr Nanos kPollWaiting = 50 * 1000;
constexpr Nanos kPollPosting = 1000 * 1000;
// With a crew he only sees to it that all goes on: the turn is the movers'.
constexpr Nanos kPollCrewed = 20 * 1000;
// A small message that comes when a crew is asleep waits until it has woken up, and so do the next ones.
constexpr Nanos kBulkRestsAfter = 20 * kNanosPerMs;
// A sleep costs a mover more than some tries, and so does a call to the scheduler. About 10 microseconds.
constexpr int kTriesForTurn = 100, kPausesOfTry = 3;

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

bool Peer::TryTurn() {
  if (!turn_.try_lock()) return false;
  now_ = io_->Now();
  return true;
}

void Peer::Submit(FlowId flow, void* data, uint64_t bytes) {
  const Request request{flow, data, bytes};
  if (TryTurn()) return JobsTurn(flow, &request);
  {
    const std::lock_guard lock(inbox_mutex_);
    inbox_.push_back(request);
    waiting_.store(true);
  }
  // Whoever has the turn looks at the inbox when he has given it back; who gave it back before that leaves it to us.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (TryTurn()) JobsTurn(flow, nullptr);
}

void Peer::Help(FlowId flow) {
  if (crewed() && !more() && io_->Now() - polled_.load(std::memory_order_relaxed) < kPollCrewed) return;
  if (TryTurn()) JobsTurn(flow, nullptr);
}

void Peer::JobsTurn(FlowId flow, const Request* request) {
  bool hot = request == nullptr;
  do {
    helped_.store(helped_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    jobs_turn_ = true;
    bool moved = RunInbox();
    if (!shut_) {
      if (request != nullptr) Announce(request->bytes);
      CrewAsNeeded();
      if (request != nullptr) Post(request->flow, request->data, request->bytes);
      moved = moved || request != nullptr || unsettled_;
      const Moved found = Move(flow, hot);
      // An idle look costs as little as can be: who waits for a message comes back at once.
      if (found != Moved::kNothing || moved || more()) {
        CrewAsNeeded();
        unsettled_ = found == Moved::kFound && !moved && PublishFound();
        if (!unsettled_) SettleNow();
      }
    }
    jobs_turn_ = false;
    turn_.unlock();
    request = nullptr;
    hot = false;
    // A request that came while the turn was ours was left to us.
    std::atomic_thread_fence(std::memory_order_seq_cst);
  } while (waiting_.load() && TryTurn());
}

bool Peer::Service() {
  if (!TryTurn()) return false;
  const std::lock_guard turn(turn_, std::adopt_lock);
  RunInbox();
  if (shut_) return true;
  polled_.store(0, std::memory_order_relaxed);
  Move(0, false);
  CrewAsNeeded();
  SettleNow();
  return true;
}

std::unique_lock<std::mutex> Peer::TakeTurnSoon() {
  for (int i = 0; i < kTriesForTurn; ++i) {
    if (TryTurn()) return {turn_, std::adopt_lock};
    for (int k = 0; k < kPausesOfTry; ++k) Pause();
  }
  return TakeTurn();
}

void Peer::Carry(Errand* errand) {
  auto turn = TakeTurnSoon();
  if (RunInbox() && !shut_) SettleNow();
  while (!shut_ && errand->Prepare()) {
    errand->Begin();
    turn.unlock();
    errand->Call();
    errand->End();
    turn = TakeTurnSoon();
    const bool posted = RunInbox();
    if (shut_) return;
    const bool on = errand->Finish();
    SettleNow();
    if (!on && !posted) break;
  }
  do {
    if (!turn.owns_lock() && !turn.try_lock()) return;
    if (RunInbox() && !shut_) SettleNow();
    turn.unlock();
    std::atomic_thread_fence(std::memory_order_seq_cst);
  } while (waiting_.load());
}

void Peer::UpdateCrew() {
  if (now() - counted_ >= kBulkRestsAfter) run_.Rest();
  const bool wanted = io_->movers != nullptr && run_.is_bulk();
  if (!wanted && !crewed()) return;
  crewed_.store(wanted, std::memory_order_relaxed);
  Crew(wanted);
}

void Peer::TickTurn() {
  const auto turn = TakeTurn();
  if (shut_) return;
  RunInbox();
  WatchAll();
  PollAndTick();
  SettleNow();
}

bool Peer::Poll() {
  polled_.store(now(), std::memory_order_relaxed);
  ReadUnwatched();
  return poller_.Wait(0);
}

// Silence is judged when everything that has arrived was read.
void Peer::PollAndTick() {
  now_ = io_->Now();
  if (!Poll()) return;
  ticked_ = now();
  Tick();
}

bool Peer::RunInbox() {
  if (!waiting_.load(std::memory_order_acquire)) return false;
  {
    const std::lock_guard lock(inbox_mutex_);
    taken_.swap(inbox_);
    waiting_.store(false);
  }
  // After the end requests come to nothing; their comms have failed.
  for (const Request& request : taken_) {
    if (shut_) break;
    Announce(request.bytes);
    Post(request.flow, request.data, request.bytes);
  }
  taken_.clear();
  return true;
}

Nanos Peer::PollEvery(bool hot) const {
  if (!hot) return kPollPosting;
  if (crewed()) return kPollCrewed;
  // Small messages keep to their sockets: while they come, nothing is missed on others.
  return !run_.has_large() && now() - moved_ < kPollWaiting ? kPollPosting : kPollWaiting;
}

Peer::Moved Peer::Move(FlowId flow, bool hot) {
  if (hot && Hot(flow)) {
    moved_ = now();
    return Moved::kFound;
  }
  if (now() - ticked_ >= kTickEvery) {
    PollAndTick();
    return Moved::kSomething;
  }
  if (now() - polled_.load(std::memory_order_relaxed) < PollEvery(hot)) return Moved::kNothing;
  Poll();
  return Moved::kSomething;
}

void Peer::Shut() {
  if (shut_) return;
  CloseAll();
  shut_ = true;
}

}  // namespace r2cc::net
