// The part of the rail watch that looks for conditions that no verdict covers.
#include <algorithm>
#include <utility>

#include "daemon/rails/rail_watch.h"

namespace r2cc::daemon {
namespace {

// An answer counts for several rounds of questions.
constexpr Nanos kStrayAnswerCounts = 8 * kNanosPerSecond;
// NICs of other nodes that are looked for in one round. If more are silent at once, no two cables are crossed.
constexpr size_t kSoughtMax = 8;

}  // namespace

RailAlarmFacts RailWatch::AlarmFacts() const {
  RailAlarmFacts facts{
      .node = node_, .now = seams_.executor->Now(), .view = view_, .nics = order_, .cables = cables_, .last_messages = last_messages_};
  for (const auto& [user, nodes] : job_peers_) facts.job_nodes.insert(nodes.begin(), nodes.end());
  // All pairs' statuses are a copy of much, and mostly none is needed.
  if (!prober_.AnyUnanswered(kDaemonAwake)) return facts;
  facts.pairs = prober_.Pairs();
  facts.strays = prober_.StraysAnswered(facts.now - kStrayAnswerCounts);
  return facts;
}

void RailWatch::SeekCrossed() {
  if (!prober_.AnyUnanswered(kCrossedAfter)) return;
  std::vector<health::RailPairStatus> silent = MayBeCrossed(AlarmFacts());
  if (silent.size() > kSoughtMax) silent.resize(kSoughtMax);
  for (const health::RailPairStatus& pair : silent) {
    const auto target = std::find_if(targets_.begin(), targets_.end(), [&](const health::RailTarget& one) { return one.key == pair.key; });
    if (target == targets_.end()) continue;
    for (const auto& [name, nic] : nics_) {
      if (name == pair.key.own.nic || !nic.link_up || cables_.contains(name)) continue;
      health::RailTarget other = *target;
      other.key.own.nic = name;
      if (const auto ping = prober_.Stray(std::move(other), seams_.executor->Now()); ping.has_value())
        (void)sockets_.SendOnLink(name, {ping->address, ping->port}, health::Padded(ping->bytes, ping->length));
    }
  }
}

}  // namespace r2cc::daemon
