#include "tests/sim/runs.h"

#include <algorithm>

namespace r2cc::sim {
namespace {

constexpr Nanos kLookEvery = 10 * kNanosPerMs;
// A launcher needs so long at most to begin a process again. Mostly it is quick: others still run then.
constexpr Nanos kLaunchMost = 2 * kNanosPerSecond;
constexpr Nanos kQuickLaunchMost = 50 * kNanosPerMs;

}  // namespace

Runs::Runs(Timeline* timeline, std::vector<Process*> processes, int runs, std::function<void(Process*)> begun,
           std::function<void()> launched)
    : timeline_(timeline),
      processes_(std::move(processes)),
      runs_(runs),
      nodes_(static_cast<int>(processes_.size()) / runs),
      begun_(std::move(begun)),
      launched_call_(std::move(launched)),
      begin_at_(static_cast<size_t>(nodes_)) {
  if (runs_ > 1) Look();
}

Process* Runs::Current(int node) const {
  Process* current = processes_[static_cast<size_t>(node)];
  for (size_t next = static_cast<size_t>(node + nodes_); next < processes_.size() && processes_[next]->begun();
       next += static_cast<size_t>(nodes_))
    current = processes_[next];
  return current;
}

void Runs::Look() {
  const Nanos now = timeline_->now();
  for (int node = 0; node < nodes_; ++node) {
    const Process& before = *Current(node);
    Nanos& begin_at = begin_at_[static_cast<size_t>(node)];
    if (!before.dead() || IsOfLast(before) || before.host() >= nodes_ * launched_) continue;
    if (begin_at == 0) begin_at = now + timeline_->random().Between(0, timeline_->random().Chance(3) ? kLaunchMost : kQuickLaunchMost);
    if (now < begin_at) continue;
    begin_at = 0;
    last_begin_ = now;
    Process* const process = processes_[static_cast<size_t>(before.host() + nodes_)];
    process->Begin();
    begun_(process);
  }
  const auto next = processes_.begin() + nodes_ * launched_;
  if (std::all_of(next, next + nodes_, [](const Process* process) { return process->begun(); })) {
    ++launched_;
    launched_call_();
  }
  if (!all_launched()) timeline_->After(kLookEvery, [this] { Look(); });
}

}  // namespace r2cc::sim
