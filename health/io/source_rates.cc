#include "health/io/source_rates.h"

#include <algorithm>

namespace r2cc::health {
namespace {

// A budget is whole again after this.
constexpr Nanos kIdle = kSourceDatagramsBurst * kNanosPerSecond / kSourceDatagramsPerSecond;

}  // namespace

SourceRates::Answer SourceRates::Count(const std::string& source, Nanos now) {
  auto found = sources_.find(source);
  if (found == sources_.end()) {
    if (sources_.size() >= kSourcesMax) DropIdle(now);
    if (sources_.size() >= kSourcesMax) return Answer::kTake;
    found = sources_.emplace(source, Source()).first;
  }
  Source& one = found->second;
  one.last = now;
  if (one.blocked_until == 0 && one.budget.Take(now)) return Answer::kTake;
  const bool news = one.blocked_until == 0 && blocked_.size() < kBlockedSourcesMax;
  if (!news) return Answer::kDrop;
  one.blocked_until = now + kBlockDuration;
  blocked_.push_back(source);
  return Answer::kNewlyBlocked;
}

bool SourceRates::Release(Nanos now) {
  return std::erase_if(blocked_, [&](const std::string& source) {
           const auto found = sources_.find(source);
           if (found->second.blocked_until > now) return false;
           sources_.erase(found);
           return true;
         }) > 0;
}

Nanos SourceRates::NextRelease() const { return blocked_.empty() ? 0 : sources_.at(blocked_.front()).blocked_until; }

void SourceRates::DropIdle(Nanos now) {
  // A look at all of them costs as much as a tenth of a second of datagrams.
  if (now - dropped_idle_ < kIdle / 4) return;
  dropped_idle_ = now;
  std::erase_if(sources_, [&](const auto& entry) { return entry.second.blocked_until == 0 && now - entry.second.last >= kIdle; });
}

}  // namespace r2cc::health
