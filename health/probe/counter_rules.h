// Judges how fast a port's error counters may grow before the port counts as impaired. Pure: time is an argument.
//
// Each counter fills a bucket that holds `count_limit` and drains by as much per `window`; a full one breaks the rule. So a burst and a
// steady trickle are judged by one rule, and one odd frame a day is forgotten.
#ifndef R2CC_HEALTH_PROBE_COUNTER_RULES_H_
#define R2CC_HEALTH_PROBE_COUNTER_RULES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "base/core/clock.h"

namespace r2cc::health {

struct CounterRule {
  const char* counter;
  uint64_t count_limit;
  Nanos window;
  // The rule also asks for this many in a million of the packets of the same time: where a counter grows with load, by congestion as well
  // as by a fault. 0: it does not.
  uint32_t packets_ppm_min;
  // A counter of InfiniBand's PortCounters stops there until it is reset, as the specification has it. 0: it does not stop. Values that a
  // driver reads from the wider counters of the same name go beyond.
  uint64_t full = 0;
};

// A rule for every counter that io/sysfs_port_facts.h reads.
std::span<const CounterRule> CounterRules();

// One port's counters over time. One thread at a time.
class CounterWatch {
 public:
  struct Verdict {
    uint64_t permille = 0;  // how full the fullest bucket is; 1000 or more: the rule is broken
    // "57 rx_crc_errors in 1 s, the limit is 10"; that a counter is full, so that nothing is known of it; empty: nothing grew.
    std::string text;
  };

  // Takes a sample. The first one, and the first after Reset, has no past: its verdict is empty. A counter that went back (the device
  // was replaced) counts from zero; one that is new has no past. `packets`: all of the port's, if they are known. REQUIRES: `now` does
  // not go back.
  Verdict Sample(const std::map<std::string, uint64_t>& counters, std::optional<uint64_t> packets, Nanos now);

  void Reset();

 private:
  struct Bucket {
    uint64_t last = 0;
    double level = 0;
  };
  std::map<std::string, Bucket> buckets_;
  std::optional<uint64_t> packets_;
  std::optional<Nanos> when_;
};

// Growth of a counter.
uint64_t Growth(uint64_t before, uint64_t after);

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_PROBE_COUNTER_RULES_H_
