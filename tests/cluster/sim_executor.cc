#include "tests/cluster/sim_executor.h"

#include <poll.h>

#include <utility>

#include "tests/sim/charge.h"

namespace r2cc::cluster {
namespace {

// From a packet in a Unix socket to the daemon's turn: a wake-up.
constexpr Nanos kWakeUp = 20'000;

}  // namespace

void SimExecutor::State::Run(TimerId id) {
  if (stopped && tasks.contains(id)) return held.push_back(id);
  const sim::Charge charge(sim::Account::kDaemons);
  auto task = tasks.extract(id);
  if (!task.empty()) task.mapped()();
}

TimerId SimExecutor::RunAfter(Nanos delay, Task task) {
  const TimerId id = ++last_id_;
  state_->tasks.emplace(id, std::move(task));
  timeline_->At(delay <= 0 ? timeline_->now() : clock_.When(Now() + delay), [state = state_, id] { state->Run(id); });
  return id;
}

void SimExecutor::Continue() {
  state_->stopped = false;
  for (const TimerId id : std::exchange(state_->held, {})) timeline_->After(0, [state = state_, id] { state->Run(id); });
}

absl::Status SimExecutor::AddFd(int fd, uint32_t epoll_events, FdHandler handler) {
  watches_[fd] = {epoll_events, std::make_shared<FdHandler>(std::move(handler))};
  LookSoon();
  return absl::OkStatus();
}

absl::Status SimExecutor::ModifyFd(int fd, uint32_t epoll_events) {
  watches_.at(fd).events = epoll_events;
  LookSoon();
  return absl::OkStatus();
}

void SimExecutor::LookSoon() {
  if (!std::exchange(look_planned_, true)) RunAfter(kWakeUp, [this] { Look(); });
}

// poll()'s flags are epoll's.
void SimExecutor::Look() {
  look_planned_ = false;
  std::vector<pollfd> all;
  for (const auto& [fd, watch] : watches_)
    if (watch.events != 0) all.push_back({fd, static_cast<int16_t>(watch.events), 0});
  if (poll(all.data(), all.size(), 0) <= 0) return;
  for (const pollfd& one : all) {
    if (one.revents == 0) continue;
    const auto watch = watches_.find(one.fd);
    // A handler before it may have removed it.
    if (watch == watches_.end()) continue;
    const std::shared_ptr<FdHandler> handler = watch->second.handler;
    (*handler)(static_cast<uint32_t>(one.revents));
  }
  // Level-triggered: what a handler left is there still.
  LookSoon();
}

}  // namespace r2cc::cluster
