#include "netplugin/transport/tcp/peer.h"

namespace r2cc::net {
namespace {

// An NCCL thread looks where its message is expected; at all sockets only so often: soon while it waits, seldom on the way of a message.
constexpr Nanos kPollWaiting = 50 * 1000;
constexpr Nanos kPollPosting = 500 * 1000;

}  // namespace

void Peer::Submit(FlowId flow, void* data, uint64_t bytes) {
  {
    const std::lock_guard lock(inbox_mutex_);
    inbox_.push_back({flow, data, bytes});
    waiting_.store(true);
  }
  JobsTurn(flow, false);
}

void Peer::Help(FlowId flow) { JobsTurn(flow, true); }

void Peer::JobsTurn(FlowId flow, bool hot) {
  do {
    if (!turn_.try_lock()) return;
    helped_.store(helped_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    jobs_turn_ = true;
    Turn(flow, hot);
    jobs_turn_ = false;
    turn_.unlock();
    // A request that came while the turn was ours was left to us.
    std::atomic_thread_fence(std::memory_order_seq_cst);
  } while (waiting_.load());
}

bool Peer::Service() {
  if (!turn_.try_lock()) return false;
  polled_ = 0;
  Turn(0, false);
  turn_.unlock();
  return true;
}

void Peer::TickTurn() {
  const auto turn = TakeTurn();
  if (shut_) return;
  RunInbox();
  PollAndTick();
  more_ = Settle();
}

// Silence is judged when everything that has arrived was read.
void Peer::PollAndTick() {
  polled_ = io_->Now();
  if (!poller_.Wait(0)) return;
  ticked_ = polled_;
  Tick();
}

void Peer::RunInbox() {
  if (!waiting_.load(std::memory_order_acquire)) return;
  {
    const std::lock_guard lock(inbox_mutex_);
    taken_.swap(inbox_);
    waiting_.store(false);
  }
  // After the end requests come to nothing; their comms have failed.
  for (const Request& request : taken_)
    if (!shut_) Post(request.flow, request.data, request.bytes);
  taken_.clear();
}

void Peer::Turn(FlowId flow, bool hot) {
  RunInbox();
  if (shut_) return;
  const bool moved = hot && Hot(flow);
  if (!moved) {
    const Nanos now = io_->Now();
    if (now - ticked_ >= kTickEvery) {
      PollAndTick();
    } else if (now - polled_ >= (hot ? kPollWaiting : kPollPosting)) {
      polled_ = now;
      poller_.Wait(0);
    }
  }
  more_.store(Settle(), std::memory_order_relaxed);
}

void Peer::Shut() {
  if (shut_) return;
  CloseAll();
  shut_ = true;
}

}  // namespace r2cc::net
