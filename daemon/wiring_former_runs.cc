// Restores the state of the daemon's former runs, and keeps the state for the next one.
#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "base/log.h"
#include "daemon/wiring.h"

namespace r2cc::daemon {

void Wiring::RestoreFormerRuns() {
  std::string audit_trouble, history_trouble, jobs_trouble;
  const int64_t now = reporter_.Now().realtime_ns;
  std::vector<v1::Event> events = kept_.history.Load(now, &history_trouble);
  const uint64_t instance = events.empty() ? world_.incarnation : events.front().instance();
  const uint64_t missing = events.empty() || kept_.history.is_whole() ? 0 : EventLog::kLostMax;
  // The audit reaches further back: its older events have the numbers before the history's. A crash may have lost others to the history.
  std::set<std::pair<int64_t, std::string>> known;
  for (const v1::Event& event : events)
    if (event.has_audit()) known.emplace(event.time_ns(), event.message());
  std::vector<v1::Event> older, lost;
  for (v1::Event& event : kept_.audit.Load(EventLog::kAuditedMax, &audit_trouble)) {
    if (known.contains({event.time_ns(), event.message()})) continue;
    (!events.empty() && event.time_ns() < events.front().time_ns() ? older : lost).push_back(std::move(event));
  }
  const uint64_t before = events.empty() ? 0 : events.front().sequence() - 1;
  if (older.size() > before) older.erase(older.begin(), older.end() - static_cast<ptrdiff_t>(before));
  for (size_t i = 0; i < older.size(); ++i) older[i].set_sequence(before - older.size() + i + 1);
  older.insert(older.end(), std::make_move_iterator(events.begin()), std::make_move_iterator(events.end()));
  events_.Restore(std::move(older), instance, missing);
  for (v1::Event& event : lost) {
    event.set_sequence(events_.Append(event));
    event.set_instance(instance);
    kept_.history.Add(event);
  }
  reporter_.KeepBy([this](const v1::Event& event) {
    kept_.history.Add(event);
    services_.metrics.Count(event);
  });
  jobs_.Restore(kept_.jobs.Load(&jobs_trouble));
  for (const std::string& line : {kept_.trouble, audit_trouble, history_trouble, jobs_trouble}) {
    if (line.empty()) continue;
    LogWarning(line);
    reporter_.Report("state", line);
  }
}

// Soon after something happened; plugins report their jobs' bytes again, and these are kept for jobs that end while no daemon runs.
void Wiring::KeepJobs() {
  constexpr Nanos kAtLeastEvery = kNanosPerSecond;
  constexpr Nanos kAtMostEvery = 60 * kNanosPerSecond;
  const Nanos since = world_.core->Now() - pace_.jobs_kept;
  if (since < kAtLeastEvery || !(jobs_.TakeChanged() || (since >= kAtMostEvery && jobs_.registry().size() > 0))) return;
  pace_.jobs_kept = world_.core->Now();
  kept_.jobs.Save(jobs_.registry().ToKeep(reporter_.Now().realtime_ns));
}

}  // namespace r2cc::daemon
