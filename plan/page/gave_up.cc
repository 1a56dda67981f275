#include "plan/page/gave_up.h"

#include <time.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdio>

namespace r2cc::plan {
namespace {

constexpr int64_t kNanosPerSecond = 1'000'000'000;

// The fault of a rail, without its name.
std::string CauseOf(const GaveUp& gave_up, const GaveUpRail& rail) {
  std::string text;
  if (rail.dead_port == DeadPort::kPeer) text = "port of " + gave_up.peer + " ";
  if (rail.dead_port == DeadPort::kOwn) text = "port of " + gave_up.node + " ";
  bool since = true;
  switch (rail.cause) {
    case EvidenceCause::kSilence: text += "silent"; break;
    case EvidenceCause::kLinkDown: text += "link down", since = false; break;
    case EvidenceCause::kSocketError: text += "broken"; break;
    case EvidenceCause::kPageNotice: text += "failed by r2ccd"; break;
    case EvidenceCause::kPeerFenced: text += "given up by " + gave_up.peer; break;
    case EvidenceCause::kGarbled: text += "garbled"; break;
    case EvidenceCause::kStalled: text += "carrying nothing on some connections"; break;
    case EvidenceCause::kLargeLost: text += "losing large packets"; break;
    case EvidenceCause::kSimulated: text += "taken away by R2CC_FAIL_RAILS", since = false; break;
    case EvidenceCause::kNone:
    case EvidenceCause::kFlowClosed:
    case EvidenceCause::kRetired: text += "never up", since = false; break;
  }
  return since && !rail.since.empty() ? text + " since " + rail.since : text;
}

// Its digits at the end; where there are none, the whole.
size_t NumberAt(const std::string& name) {
  size_t at = name.size();
  while (at > 0 && std::isdigit(static_cast<unsigned char>(name[at - 1])) != 0) --at;
  return at;
}

bool Follows(const std::string& before, const std::string& name) {
  const size_t at = NumberAt(name);
  // Names come from outside: few digits, so that they are a number.
  if (at != NumberAt(before) || at == name.size() || name.size() - at > 4 || before.size() - at > 4 ||
      name.compare(0, at, before, 0, at) != 0)
    return false;
  int number = 0, number_before = 0;
  std::from_chars(name.data() + at, name.data() + name.size(), number);
  std::from_chars(before.data() + at, before.data() + before.size(), number_before);
  return number == number_before + 1;
}

std::string Command(const GaveUp& gave_up) {
  // A silent end is named first: a link that is down explains itself.
  const auto silent = std::find_if(gave_up.rails.begin(), gave_up.rails.end(),
                                   [](const GaveUpRail& rail) { return rail.cause != EvidenceCause::kLinkDown && !rail.peer_nic.empty(); });
  if (silent != gave_up.rails.end() && silent->dead_port != DeadPort::kOwn)
    return "r2ccctl nic why " + gave_up.peer + "/" + silent->peer_nic;
  for (const GaveUpRail& rail : gave_up.rails)
    if (!rail.nic.empty()) return "r2ccctl nic why " + gave_up.node + "/" + rail.nic;
  return "r2ccctl path probe " + gave_up.node + " " + gave_up.peer;
}

}  // namespace

std::string GaveUpText(const GaveUp& gave_up) {
  char after[32];
  std::snprintf(after, sizeof(after), "%.1f s", static_cast<double>(gave_up.lasted_ns) / kNanosPerSecond);
  std::string text = "job " + gave_up.job + " (pid " + std::to_string(gave_up.pid) + ") on " + gave_up.node + " gave up on " +
                     gave_up.peer + " after " + after + ": ";
  const std::vector<GaveUpRail>& rails = gave_up.rails;
  if (rails.empty()) text += "no rail reached it";
  for (size_t first = 0, last = 0; first < rails.size(); first = last + 1) {
    const std::string wrong = CauseOf(gave_up, rails[first]);
    last = first;
    while (last + 1 < rails.size() && Follows(rails[last].rail, rails[last + 1].rail) && CauseOf(gave_up, rails[last + 1]) == wrong) ++last;
    text += (first == 0 ? "" : ", ") + rails[first].rail;
    if (last > first) text += ".." + rails[last].rail.substr(NumberAt(rails[last].rail));
    text += " " + wrong;
  }
  return text + "; " + Command(gave_up);
}

std::string TimeOfDay(int64_t realtime_ns) {
  const time_t seconds = static_cast<time_t>(realtime_ns / kNanosPerSecond);
  tm local{};
  localtime_r(&seconds, &local);
  char text[16];
  std::snprintf(text, sizeof(text), "%02d:%02d:%02d", local.tm_hour % 100, local.tm_min % 100, local.tm_sec % 100);
  return text;
}

}  // namespace r2cc::plan
