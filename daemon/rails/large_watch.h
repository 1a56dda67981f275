// What this node says of NICs that lose large packets: which paths are not to be used, and when a fault is told of a NIC, told otherwise,
// and taken back. Pure: time is an argument.
#ifndef R2CC_DAEMON_RAILS_LARGE_WATCH_H_
#define R2CC_DAEMON_RAILS_LARGE_WATCH_H_

#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/core/clock.h"
#include "health/view/localise.h"

namespace r2cc::daemon {

// So long a pair must lose them before the plan hears of it: the pairs of a port whose MTU was reset begin to lose them one by one.
constexpr Nanos kLargeHold = 200 * kNanosPerMs;
// And so long before it is told of the NIC, if what other nodes see may still show that the fault is elsewhere.
constexpr Nanos kLargeSettle = 700 * kNanosPerMs;
// What was told is told otherwise, or taken back because the fault is the other end's, at most so often, and when it was seen for so long:
// while a port comes back its pairs prove themselves one by one, and for a moment the rest looks like a fault of its own.
constexpr Nanos kLargeAgain = kNanosPerSecond;

class LargeWatch {
 public:
  struct Seen {
    std::set<health::NicKey> lost;  // the other ends of the NIC's pairs that lose large packets
    size_t nodes = 0;               // that its pairs lead to: with one alone nobody can tell more
    health::Fault fault;            // of the NIC, in the matrix of large packets
    health::LargeLoss loss;         // of one of these pairs
  };
  struct Verdict {
    std::set<health::NicKey> broken;  // paths that are not to be used
    // What is to be told of the NIC now; empty text: they pass again.
    std::optional<std::string> tell;
    bool ask = false;  // more is to be known soon
  };
  Verdict Judge(const health::NicKey& nic, const Seen& seen, Nanos now);

  // A fault of the NIC is told.
  bool Told(const std::string& nic) const;
  // Its link went down, which explains all, or it is no NIC any more.
  void Forget(const std::string& nic) { nics_.erase(nic); }
  bool empty() const { return nics_.empty(); }

 private:
  struct Nic {
    Nanos since = 0;  // that it loses them
    health::FaultKind seen = health::FaultKind::kNone;
    Nanos seen_since = 0;
    std::string told;
    Nanos told_at = 0;
  };
  std::map<std::string, Nic> nics_;  // those that lose them, or of which it is told
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_RAILS_LARGE_WATCH_H_
