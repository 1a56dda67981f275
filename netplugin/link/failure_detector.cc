#include "netplugin/link/failure_detector.h"

#include <algorithm>

#include "netplugin/flow/mutant.h"

namespace r2cc::net {

void FailureDetector::Up(ChannelId channel, Nanos now) {
  heard_ = now;
  channels_[channel] = State{.heard = now, .answering_since = now};
}

void FailureDetector::Down(ChannelId channel) { channels_.erase(channel); }

void FailureDetector::Heard(ChannelId channel, Nanos now) {
  heard_ = now;
  const auto it = channels_.find(channel);
  if (it == channels_.end()) return;
  State& state = it->second;
  if (now - state.heard > silence_ / 2) state.answering_since = now;
  state.heard = now;
  state.unanswered_since = 0;
}

void FailureDetector::Delivered(ChannelId channel) {
  if (const auto it = channels_.find(channel); it != channels_.end()) it->second.unanswered_since = 0;
}

bool FailureDetector::AllSilent(Nanos now) const {
  return std::all_of(channels_.begin(), channels_.end(), [&](const auto& entry) { return now - entry.second.heard >= silence_; });
}

bool FailureDetector::Silent(ChannelId channel, Nanos now) const {
  const auto it = channels_.find(channel);
  return it != channels_.end() && it->second.unanswered_since != 0 && now - it->second.unanswered_since >= silence_;
}

void FailureDetector::Pong(ChannelId channel, uint64_t number, Nanos now) {
  const auto it = channels_.find(channel);
  if (it == channels_.end()) return;
  State& state = it->second;
  const auto ping = state.in_flight.find(number);
  if (ping == state.in_flight.end()) return;
  state.answered_ping = std::max(state.answered_ping, ping->second);
  state.in_flight.erase(state.in_flight.begin(), std::next(ping));
  Heard(channel, now);
}

FailureDetector::Verdict FailureDetector::Tick(bool outstanding, Nanos now) {
  Verdict verdict;
  if (!outstanding) {
    watching_ = false;
    return verdict;
  }
  if (!watching_) {
    // The clock of silence starts with the request, not with the last thing heard before a pause.
    watching_ = true;
    for (auto& [channel, state] : channels_) {
      state.heard = state.answering_since = now;
      state.unanswered_since = 0;
    }
  }
  const Nanos quiet = silence_ / 4;
  bool any_link_quiet = channels_.size() == 1;
  for (const auto& [channel, state] : channels_)
    if (channel != kOobChannel && now - state.heard >= quiet) any_link_quiet = true;
  if (!any_link_quiet) return verdict;

  // What speaks against one channel is the answers of the others, also of those that are heard all the time.
  const bool suspicion =
      std::any_of(channels_.begin(), channels_.end(), [](const auto& entry) { return entry.second.unanswered_since != 0; });
  for (auto& [channel, state] : channels_) {
    if (now - (suspicion ? state.pinged : std::max(state.heard, state.pinged)) >= quiet) {
      verdict.pings.push_back({channel, next_number_});
      state.in_flight[next_number_++] = now;
      if (state.in_flight.size() > 64) state.in_flight.erase(state.in_flight.begin());
      state.pinged = now;
      if (state.unanswered_since == 0) state.unanswered_since = now;
    }
  }
  verdict.peer_silent = AllSilent(now);
  for (const auto& [channel, state] : channels_) {
    if (state.unanswered_since == 0 || now - state.unanswered_since < silence_ * 3 / 4) continue;
    if (IsActive(Mutant::kFalseFence)) verdict.silent.push_back(channel);
    for (const auto& [other_channel, other] : channels_)
      if (!IsActive(Mutant::kFalseFence) && other_channel != channel && other.answered_ping >= state.unanswered_since + silence_ / 4 &&
          now - other.heard < AnswersWithin() && now - other.answering_since >= silence_ / 2) {
        verdict.silent.push_back(channel);
        break;
      }
  }
  return verdict;
}

}  // namespace r2cc::net
