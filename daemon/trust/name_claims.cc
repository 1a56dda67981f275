#include "daemon/trust/name_claims.h"

#include <utility>

namespace r2cc::daemon {

NameClaims::Claim NameClaims::Speak(const std::string& node, const Speaker& speaker, Nanos now) {
  const auto [found, fresh] = held_.try_emplace(node);
  Held& held = found->second;
  if (fresh) held.by = speaker;
  Claim claim{.holds = held.by.life == speaker.life || now - held.heard >= kHolds};
  std::optional<Speaker> other;
  if (!claim.holds) {
    held.rival = speaker;
    if (held.before.has_value() && held.before->life == speaker.life) other = held.by;
  } else if (held.by.life == speaker.life) {
    other = std::exchange(held.rival, std::nullopt);
  } else {
    if (held.before.has_value() && held.before->life == speaker.life) other = held.by;
    held.before = std::exchange(held.by, speaker);
    held.rival.reset();
  }
  if (claim.holds) held.heard = now;
  if (!other.has_value() || (held.told.has_value() && now - *held.told < kToldFor)) return claim;
  held.told = now;
  claim.other = std::move(other);
  return claim;
}

}  // namespace r2cc::daemon
