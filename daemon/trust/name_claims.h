// Which daemon speaks for a node, where several call themselves by its name. Pure: time is an argument. One thread at a time.
#ifndef R2CC_DAEMON_TRUST_NAME_CLAIMS_H_
#define R2CC_DAEMON_TRUST_NAME_CLAIMS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/core/clock.h"

namespace r2cc::daemon {

class NameClaims {
 public:
  // Who has a name keeps it as long as he is heard of again within this; keep-alives come several times as often.
  static constexpr Nanos kHolds = 2 * kNanosPerSecond;
  // Two that stay are told again no sooner: whoever makes up names without end fills no log.
  static constexpr Nanos kToldFor = 60 * kNanosPerSecond;

  // A life of a daemon, by the random number that it shows in each view, and where its words come from.
  struct Speaker {
    uint64_t life = 0;
    std::string address;
  };
  // What `speaker`, which calls itself `node` at `now`, may do.
  struct Claim {
    bool holds = false;  // its words are taken; false: another has the name
    // Set where both live: after the one was started instead of the other, the other would not speak again.
    std::optional<Speaker> other;
  };
  Claim Speak(const std::string& node, const Speaker& speaker, Nanos now);

 private:
  struct Held {
    Speaker by;
    Nanos heard = 0;
    std::optional<Speaker> before;  // who had the name until then
    std::optional<Speaker> rival;   // who came beside the one that has it
    std::optional<Nanos> told;
  };
  std::map<std::string, Held> held_;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_TRUST_NAME_CLAIMS_H_
