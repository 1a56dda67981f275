// The rate of each sender to one socket. A sender beyond it is kept out for a while, and takes no room from the others. Pure.
#ifndef R2CC_HEALTH_IO_SOURCE_RATES_H_
#define R2CC_HEALTH_IO_SOURCE_RATES_H_

#include <map>
#include <string>
#include <vector>

#include "base/core/clock.h"
#include "base/core/token_bucket.h"

namespace r2cc::health {

// Datagrams a second of one sender, and at once. A daemon sends at most 200 pings a second, and answers each of 200 with up to two.
constexpr int kSourceDatagramsPerSecond = 1000;
constexpr int kSourceDatagramsBurst = 500;
// A sender that exceeds its budget is kept out for this long.
constexpr Nanos kBlockDuration = 10 * kNanosPerSecond;
// Senders that are counted. With more, as of a flood that makes up its senders, the others share the socket's own rate.
constexpr size_t kSourcesMax = 4096;
// Senders that are kept out at once: each costs the kernel's filter up to 9 instructions a datagram.
constexpr size_t kBlockedSourcesMax = 64;

class SourceRates {
 public:
  enum class Answer {
    kTake,
    kNewlyBlocked,  // Blocked() is another one
    kDrop,
  };
  // A datagram of `source` has come.
  Answer Count(const std::string& source, Nanos now);
  // Readmits senders whose time is over; true: Blocked() has changed.
  bool Release(Nanos now);

  // By address.
  const std::vector<std::string>& Blocked() const { return blocked_; }
  // When the first of them is to be let in again; 0: nobody is kept out.
  Nanos NextRelease() const;
  size_t sources() const { return sources_.size(); }

 private:
  struct Source {
    TokenBucket budget{kSourceDatagramsPerSecond, kSourceDatagramsBurst};
    Nanos last = 0;
    Nanos blocked_until = 0;
  };
  // Those that have their whole budget need no entry.
  void DropIdle(Nanos now);

  std::map<std::string, Source> sources_;
  std::vector<std::string> blocked_;
  Nanos dropped_idle_ = 0;
};

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_IO_SOURCE_RATES_H_
