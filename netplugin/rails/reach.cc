#include "netplugin/rails/reach.h"

#include <algorithm>

#include "netplugin/flow/tuning.h"

namespace r2cc::net {
namespace {

// A line stays a line.
constexpr size_t kShown = 4;

bool Unlike(const RailEnd& one, const RailEnd& other) { return !one.family.empty() && !other.family.empty() && one.family != other.family; }

std::string HostPort(const RailEnd& end) {
  return (end.family == "IPv6" ? "[" + end.address + "]" : end.address) + ":" + std::to_string(end.port);
}

std::string Shown(const RailEnd& end) { return end.family + " (" + end.address + ")"; }

}  // namespace

std::string UnlikeFamilies(std::span<const RailEnd> own, std::span<const RailEnd> peers, const std::string& peer) {
  std::string unlike;
  size_t count = 0;
  for (size_t i = 0; i < std::min(own.size(), peers.size()); ++i) {
    if (!Unlike(own[i], peers[i]) || ++count > kShown) continue;
    unlike += (unlike.empty() ? "" : ", ") + own[i].rail + " is " + Shown(own[i]) + " and " + peers[i].rail + " there " + Shown(peers[i]);
  }
  if (count == 0) return "";
  if (count > kShown) unlike += ", ...";
  const bool some = std::any_of(own.begin(), own.end(), [&](const RailEnd& one) {
    return std::any_of(peers.begin(), peers.end(), [&](const RailEnd& other) { return !Unlike(one, other); });
  });
  return "R2CC: " + std::string(some ? "not all rails can reach" : "no rail can reach") + " peer " + peer + ": " + unlike +
         "; give both ends addresses of one family, or name such addresses in R2CC_RAILS";
}

std::string TriedRails(std::span<const RailEnd> own, std::span<const RailEnd> peers) {
  std::string tried;
  size_t count = 0;
  for (size_t i = 0; i < std::min(own.size(), peers.size()); ++i) {
    if (own[i].address.empty() || peers[i].address.empty() || ++count > kShown) continue;
    tried += (tried.empty() ? "" : ", ") + own[i].rail + " " + own[i].address + " to " + HostPort(peers[i]);
  }
  return count > kShown ? tried + ", ..." : tried;
}

std::optional<ReachWatch::Missing> ReachWatch::Tick(bool answered, bool greeted, bool linked, Nanos now) {
  if (since_ == 0) since_ = now;
  was_linked_ = was_linked_ || linked;
  if (greeted && !was_greeted_) {
    was_greeted_ = true;
    reported_ = false;
    since_ = now;
  }
  if (was_linked_ || reported_ || now - since_ < tuning::kReachEarly || (answered && !was_greeted_)) return std::nullopt;
  reported_ = true;
  return was_greeted_ ? Missing::kRail : Missing::kAnswer;
}

}  // namespace r2cc::net
