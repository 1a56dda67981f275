// What the daemon takes up from its former lives, and what it keeps for the next one.
#include <algorithm>
#include <iterator>
#include <utility>

#include "base/log.h"
#include "daemon/wiring.h"

namespace r2cc::daemon {

void Wiring::RestoreFormerLives() {
  std::string audit_trouble, history_trouble, jobs_trouble;
  const int64_t now = reporter_.Now().realtime_ns;
  std::vector<v1::Event> events = history_.Load(now, &history_trouble);
  const uint64_t instance = events.empty() ? world_.incarnation : events.front().instance();
  // The audit reaches further back. Its events have the numbers before the history's.
  std::vector<v1::Event> words = audit_.Load(EventLog::kAuditedMax, &audit_trouble);
  if (!events.empty()) std::erase_if(words, [&](const v1::Event& word) { return word.time_ns() >= events.front().time_ns(); });
  const uint64_t before = events.empty() ? words.size() : events.front().sequence() - 1;
  if (words.size() > before) words.erase(words.begin(), words.end() - static_cast<ptrdiff_t>(before));
  for (size_t i = 0; i < words.size(); ++i) words[i].set_sequence(before - words.size() + i + 1);
  words.insert(words.end(), std::make_move_iterator(events.begin()), std::make_move_iterator(events.end()));
  events_.Restore(std::move(words), instance);
  reporter_.KeepBy([this](const v1::Event& event) { history_.Add(event); });
  jobs_.Restore(job_keeper_.Load(&jobs_trouble));
  for (const std::string& line : {state_trouble_, audit_trouble, history_trouble, jobs_trouble}) {
    if (line.empty()) continue;
    LogWarning(line);
    reporter_.Tell("state", line);
  }
}

// Soon after something happened; what jobs move is told again by their plugins, and kept for those that end while no daemon runs.
void Wiring::KeepJobs() {
  constexpr Nanos kAtLeastEvery = kNanosPerSecond;
  constexpr Nanos kAtMostEvery = 60 * kNanosPerSecond;
  const Nanos since = world_.core->Now() - jobs_kept_;
  if (since < kAtLeastEvery || !(jobs_.TakeChanged() || (since >= kAtMostEvery && jobs_.registry().size() > 0))) return;
  jobs_kept_ = world_.core->Now();
  job_keeper_.Save(jobs_.registry().ToKeep(reporter_.Now().realtime_ns));
}

}  // namespace r2cc::daemon
