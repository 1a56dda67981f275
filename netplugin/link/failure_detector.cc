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
  Answered(&state);
}

void FailureDetector::Delivered(ChannelId channel) {
  if (const auto it = channels_.find(channel); it != channels_.end()) Answered(&it->second);
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
  for (auto& [other_channel, other] : channels_)
    if (other.unanswered_since != 0 && other.witnessed_since == 0 && ping->second >= other.unanswered_since) other.witnessed_since = now;
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
      Answered(&state);
    }
  }
  const Nanos quiet = silence_ / 4;
  bool any_link_quiet = channels_.size() == 1;
  for (const auto& [channel, state] : channels_)
    if (channel != kOobChannel && now - state.heard >= quiet) any_link_quiet = true;
  if (!any_link_quiet) return verdict;

  // What speaks against one channel is the answers of the others, also of those that are heard all the time. Where the verdict is due they
  // are asked once more.
  bool suspicion = false;
  Nanos due = 0;
  for (const auto& [channel, state] : channels_) {
    suspicion |= state.unanswered_since != 0;
    const Nanos at = state.witnessed_since == 0 ? 0 : state.witnessed_since + WitnessedFor();
    if (at != 0 && at <= now) due = std::max(due, at);
  }
  for (auto& [channel, state] : channels_) {
    if (now - (suspicion ? state.pinged : std::max(state.heard, state.pinged)) >= quiet || state.pinged < due) {
      verdict.pings.push_back({channel, next_number_});
      state.in_flight[next_number_++] = now;
      if (state.in_flight.size() > 64) state.in_flight.erase(state.in_flight.begin());
      state.pinged = now;
      if (state.unanswered_since == 0) state.unanswered_since = now;
    }
  }
  verdict.peer_silent = AllSilent(now);
  for (const auto& [channel, state] : channels_) {
    const auto bears_witness = [&](const auto& entry) {
      const State& other = entry.second;
      return entry.first != channel && other.heard - std::max(state.witnessed_since, other.answering_since) >= WitnessedFor();
    };
    const bool silent = IsActive(Mutant::kFalseFence)
                            ? Silent(channel, now)
                            : state.witnessed_since != 0 && std::any_of(channels_.begin(), channels_.end(), bears_witness);
    if (silent) verdict.silent.push_back(channel);
  }
  return verdict;
}

}  // namespace r2cc::net
