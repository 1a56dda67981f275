// The prober's report about its pairs.
#include <algorithm>
#include <map>
#include <string_view>

#include "health/probe/rail_prober.h"

namespace r2cc::health {

bool RailProber::Settled() const {
  const std::string* nic = nullptr;
  bool answers = true;
  for (const auto& [key, pair] : pairs_) {
    const PairState state = pair.judge.state();
    if (VerdictOf(state) == PairVerdict::kSilent || pair.large.lost()) return false;
    if (nic == nullptr || *nic != key.own.nic) {
      if (!answers) return false;
      nic = &key.own.nic;
      answers = links_down_.contains(*nic);
    }
    answers |= state == PairState::kUp;
  }
  return answers;
}

bool RailProber::AnyUnanswered(Nanos lasting) const {
  return std::any_of(pairs_.begin(), pairs_.end(),
                     [&](const auto& entry) { return entry.second.last_sent - entry.second.judge.answered_sent() >= lasting; });
}

std::vector<RailPairStatus> RailProber::Pairs() const {
  struct Silence {
    int pairs = 0;
    Nanos since = 0;
  };
  std::map<std::string_view, Silence> silences;  // by own NIC
  for (const auto& [key, pair] : pairs_) {
    if (VerdictOf(pair.judge.state()) != PairVerdict::kSilent) continue;
    Silence& silence = silences[key.own.nic];
    ++silence.pairs;
    silence.since = std::max(silence.since, pair.judge.missed_since());
  }
  // If large packets are lost on one pair of a NIC, its other pairs count only if they pass since then.
  std::map<std::string_view, Nanos> losses;
  for (const auto& [key, pair] : pairs_) {
    if (!pair.large.lost()) continue;
    Nanos& since = losses.try_emplace(key.own.nic, pair.large.missed_since()).first->second;
    since = std::min(since, pair.large.missed_since());
  }
  std::vector<RailPairStatus> all;
  all.reserve(pairs_.size());
  for (const auto& [key, pair] : pairs_) {
    const auto silence = silences.find(key.own.nic);
    const bool uncertain = silence != silences.end() && silence->second.pairs > kCompanionsMax;
    const Nanos fresh = std::max(pair.asked_since, uncertain ? silence->second.since : Nanos{0});
    all.push_back({key, pair.target.active, pair.judge.state(), Verdict(pair, pair.asked_since), Verdict(pair, fresh), pair.judge.since(),
                   pair.judge.missed_since(), pair.judge.answered_sent(), pair.judge.measures()});
    const auto loss = losses.find(key.own.nic);
    all.back().large = LargeVerdict(pair, std::max(pair.asked_since, loss == losses.end() ? Nanos{0} : loss->second));
    all.back().loss = pair.large.loss();
  }
  return all;
}

}  // namespace r2cc::health
