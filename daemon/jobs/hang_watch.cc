#include "daemon/jobs/hang_watch.h"

#include <utility>

namespace r2cc::daemon {
namespace {

// Totals come once a second: two may be late.
constexpr Nanos kSilentAfter = 3 * kNanosPerSecond;
// Look() is called twice a second: a longer gap means that the daemon itself was stopped.
constexpr Nanos kBlindAfter = 2 * kNanosPerSecond;

}  // namespace

void HangWatch::NoteAlive(JobId id, Nanos now) {
  if (const auto found = processes_.find(id); found != processes_.end()) found->second.last_received = now;
}

void HangWatch::Totals(JobId id, bool changed, Nanos now) {
  const auto found = processes_.find(id);
  if (found == processes_.end()) return;
  found->second.last_received = now;
  // The first ones are about the time before this daemon.
  if (std::exchange(found->second.reports, true) && changed) found->second.moved = now;
}

void HangWatch::Waits(JobId id, Nanos since) {
  if (const auto found = processes_.find(id); found != processes_.end()) found->second.waits_since = since;
}

std::vector<HangWatch::Turn> HangWatch::Look(Nanos now) {
  const Nanos before = std::exchange(looked_, now);
  const Nanos blind = before != 0 && now - before > kBlindAfter ? now - before : 0;
  std::vector<Turn> turns;
  for (auto& [id, process] : processes_) {
    if (blind > 0) {
      process.last_received += blind;
      if (process.moved > 0) process.moved += blind;
    }
    const bool silent = now - process.last_received > kSilentAfter;
    const bool was_moving = process.moved > 0 && process.last_received - process.moved < kSilentAfter;
    process.since = process.waits_since > 0 ? process.waits_since : silent && was_moving ? process.last_received : 0;
    const bool hangs = process.since > 0 && now - process.since >= kHangAfter;
    if (hangs == (process.hung_since > 0)) continue;
    const Nanos since = hangs ? process.since : process.hung_since;
    process.hung_since = hangs ? process.since : 0;
    turns.push_back({id, hangs, silent, since});
  }
  return turns;
}

Nanos HangWatch::Since(JobId id) const {
  const auto found = processes_.find(id);
  return found == processes_.end() ? 0 : found->second.since;
}

}  // namespace r2cc::daemon
