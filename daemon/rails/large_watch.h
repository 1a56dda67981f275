// Decides what this node reports about NICs that lose large packets: which paths are not to be used, and when a fault of a NIC is reported,
// changed, and taken back. Pure: time is an argument.
#ifndef R2CC_DAEMON_RAILS_LARGE_WATCH_H_
#define R2CC_DAEMON_RAILS_LARGE_WATCH_H_

#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/core/clock.h"
#include "health/view/localise.h"

namespace r2cc::daemon {

// A pair must lose them for this time before the plan learns of it: the pairs of a port whose MTU was reset begin to lose them one by one.
constexpr Nanos kLargeHold = 200 * kNanosPerMs;
// In addition they must be lost for this time before it is reported about the NIC, if other nodes may still show that the fault is
// elsewhere.
constexpr Nanos kLargeSettle = 700 * kNanosPerMs;
// A report is changed, or taken back because the fault is the other end's, at most at this interval, and after the new state has lasted
// this long: while a port comes back its pairs prove themselves one by one, and for a moment the others look like a separate fault.
constexpr Nanos kLargeAgain = kNanosPerSecond;

class LargeWatch {
 public:
  struct Seen {
    std::set<health::NicKey> lost;  // the other ends of the NIC's pairs that lose large packets
    size_t nodes = 0;               // nodes to which its pairs lead: with a single one nothing more can be found out
    health::Fault fault;            // of the NIC, in the matrix of large packets
    health::LargeLoss loss;         // of one of these pairs
  };
  struct Verdict {
    std::set<health::NicKey> broken;  // paths that are not to be used
    // The report about the NIC that is due now; empty text: large packets pass again.
    std::optional<std::string> report;
    bool ask = false;  // more is to be known soon
  };
  Verdict Judge(const health::NicKey& nic, const Seen& seen, Nanos now);

  // A fault of the NIC is reported.
  bool IsReported(const std::string& nic) const;
  // Its link went down, which explains all, or it is no NIC any more.
  void Forget(const std::string& nic) { nics_.erase(nic); }
  bool empty() const { return nics_.empty(); }

 private:
  struct Nic {
    Nanos since = 0;  // that it loses them
    health::FaultKind seen = health::FaultKind::kNone;
    Nanos seen_since = 0;
    std::string reported;
    Nanos reported_at = 0;
  };
  std::map<std::string, Nic> nics_;  // those that lose large packets, or about which a report is open
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_RAILS_LARGE_WATCH_H_
