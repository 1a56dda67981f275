#include "netplugin/link/failure_detector.h"

#include <algorithm>

#include "netplugin/flow/mutant.h"
#include "netplugin/flow/tuning.h"

namespace r2cc::net {

void FailureDetector::Up(ChannelId channel, Nanos now) {
  last_received_ = now;
  channels_[channel] = State{.last_received = now, .answering_since = now};
}

void FailureDetector::Down(ChannelId channel) { channels_.erase(channel); }

void FailureDetector::Received(ChannelId channel, Nanos now) {
  last_received_ = now;
  const auto it = channels_.find(channel);
  if (it == channels_.end()) return;
  State& state = it->second;
  if (now - state.last_received > silence_ / 2) state.answering_since = now;
  state.last_received = now;
  state.ping = {};
  if (IsActive(Mutant::kControlIsProgress)) state.data = {};
}

void FailureDetector::Delivered(ChannelId channel, Nanos now) {
  const auto it = channels_.find(channel);
  if (it == channels_.end() || now - it->second.last_received >= tuning::kExcuseSilences * silence_) return;
  it->second.ping = {};
}

void FailureDetector::Unacknowledged(ChannelId channel, Nanos since, bool confirmed) {
  const auto it = channels_.find(channel);
  if (it == channels_.end()) return;
  State& state = it->second;
  if (state.data.since != since) state.data = {.since = since};
  state.data_confirmed = confirmed;
}

bool FailureDetector::AllSilent(Nanos now) const {
  return std::all_of(channels_.begin(), channels_.end(), [&](const auto& entry) { return now - entry.second.last_received >= silence_; });
}

bool FailureDetector::Silent(ChannelId channel, Nanos now) const {
  const auto it = channels_.find(channel);
  return it != channels_.end() && it->second.ping.since != 0 && now - it->second.ping.since >= silence_;
}

void FailureDetector::Pong(ChannelId channel, uint64_t number, Nanos now) {
  const auto it = channels_.find(channel);
  if (it == channels_.end()) return;
  State& state = it->second;
  const auto ping = state.in_flight.find(number);
  if (ping == state.in_flight.end()) return;
  for (auto& [other_channel, other] : channels_)
    for (Suspicion* const suspicion : {&other.ping, &other.data})
      if (suspicion->since != 0 && suspicion->witnessed_since == 0 && ping->second >= suspicion->since) suspicion->witnessed_since = now;
  state.in_flight.erase(state.in_flight.begin(), std::next(ping));
  Received(channel, now);
}

bool FailureDetector::Witnessed(const Suspicion& suspicion, const ChannelId* except) const {
  if (suspicion.witnessed_since == 0) return false;
  return std::any_of(channels_.begin(), channels_.end(), [&](const auto& entry) {
    const State& other = entry.second;
    if (except != nullptr && entry.first == *except) return false;
    return other.last_received - std::max(suspicion.witnessed_since, other.answering_since) >= WitnessedFor();
  });
}

FailureDetector::Verdict FailureDetector::Tick(bool outstanding, Nanos now) {
  Verdict verdict;
  if (!outstanding) {
    watching_since_ = 0;
    return verdict;
  }
  if (watching_since_ == 0) {
    // The clock of silence starts with the request, not with the last thing heard before a pause.
    watching_since_ = now;
    for (auto& [channel, state] : channels_) {
      state.last_received = state.answering_since = now;
      state.ping = state.data = {};
    }
  }
  const Nanos quiet = silence_ / 4;
  bool any_link_quiet = channels_.size() == 1;
  bool suspicion = false;
  for (const auto& [channel, state] : channels_) {
    if (channel != kOobChannel && now - state.last_received >= quiet) any_link_quiet = true;
    suspicion |= Suspected(state, now);
  }
  if (!any_link_quiet && !suspicion) return verdict;

  // What speaks against one channel is the answers of the others, also of those that are heard all the time. Where the verdict is due they
  // are asked once more.
  Nanos due = 0;
  for (const auto& [channel, state] : channels_)
    for (const Suspicion& suspected : {state.ping, state.data}) {
      const Nanos at = suspected.witnessed_since == 0 ? 0 : suspected.witnessed_since + WitnessedFor();
      if (at != 0 && at <= now) due = std::max(due, at);
    }
  for (auto& [channel, state] : channels_) {
    if (now - (suspicion ? state.pinged : std::max(state.last_received, state.pinged)) >= quiet || state.pinged < due) {
      verdict.pings.push_back({channel, next_number_});
      state.in_flight[next_number_++] = now;
      if (state.in_flight.size() > 64) state.in_flight.erase(state.in_flight.begin());
      state.pinged = now;
      if (state.ping.since == 0) state.ping.since = now;
    }
  }
  verdict.peer_silent = AllSilent(now);
  for (const auto& [channel, state] : channels_) {
    const bool silent = IsActive(Mutant::kFalseFence) ? Silent(channel, now) : Witnessed(state.ping, &channel);
    const bool overdue = state.data.since != 0 && state.data_confirmed && now - state.data.since >= silence_;
    if (silent)
      verdict.silent.push_back(channel);
    else if (overdue && Witnessed(state.data, nullptr))
      verdict.stalled.push_back(channel);
  }
  return verdict;
}

}  // namespace r2cc::net
