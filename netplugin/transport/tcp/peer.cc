#include "netplugin/transport/tcp/peer.h"

namespace r2cc::net {
namespace {

// Between two looks at all sockets an NCCL thread looks only at the one where its message is expected.
constexpr Nanos kPollEvery = 20 * 1000;

}  // namespace

void Peer::Submit(FlowId flow, void* data, uint64_t bytes) {
  {
    const std::lock_guard lock(inbox_mutex_);
    inbox_.push_back({flow, data, bytes});
    waiting_.store(true);
  }
  Help(flow);
}

void Peer::Help(FlowId flow) {
  do {
    if (!turn_.try_lock()) return;
    helped_.store(helped_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    jobs_turn_ = true;
    Turn(flow);
    jobs_turn_ = false;
    turn_.unlock();
    // A request that came while the turn was ours was left to us.
    std::atomic_thread_fence(std::memory_order_seq_cst);
  } while (waiting_.load());
}

bool Peer::Service() {
  if (!turn_.try_lock()) return false;
  polled_ = 0;
  Turn(0);
  turn_.unlock();
  return true;
}

void Peer::TickTurn() {
  const auto turn = TakeTurn();
  if (shut_) return;
  RunInbox();
  // Silence is judged when everything that has arrived was read.
  if (poller_.Wait(0)) Tick();
  more_ = Settle();
}

void Peer::RunInbox() {
  if (!waiting_.load(std::memory_order_acquire)) return;
  {
    const std::lock_guard lock(inbox_mutex_);
    taken_.swap(inbox_);
    waiting_.store(false);
  }
  for (const Request& request : taken_) Post(request.flow, request.data, request.bytes);
  taken_.clear();
}

void Peer::Turn(FlowId flow) {
  if (shut_) return;
  RunInbox();
  const Nanos now = io_->Now();
  if (now - polled_ >= kPollEvery || flow == 0) {
    polled_ = now;
    poller_.Wait(0);
  } else {
    Hot(flow);
  }
  more_ = Settle();
}

void Peer::Shut() {
  if (shut_) return;
  CloseAll();
  shut_ = true;
}

}  // namespace r2cc::net
