// The evidence that verdicts rest on, so that they can be explained: the last kEvidenceLogEntriesMax entries. No I/O, no clock.
// One thread at a time.
#ifndef R2CC_HEALTH_EVIDENCE_EVIDENCE_LOG_H_
#define R2CC_HEALTH_EVIDENCE_EVIDENCE_LOG_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "health/evidence/evidence.h"

namespace r2cc::health {

constexpr size_t kEvidenceLogEntriesMax = 4096;

struct EvidenceEntry {
  Evidence evidence;  // as it was seen the last time
  Nanos first_when = 0;
  uint64_t times = 1;     // how often it was seen from first_when to evidence.when
  uint64_t sequence = 0;  // grows with each new entry
};

class EvidenceLog {
 public:
  explicit EvidenceLog(size_t entries_max = kEvidenceLogEntriesMax) : entries_max_(entries_max) {}

  // Adds one entry. Evidence that repeats the newest of its series (same observer, subject, peer, and question: the link, the rate, the
  // drain, ...) is counted on that entry, so that a probe that repeats itself does not displace the history. A number of flips or bounces
  // is added to the one there. The log is bounded: when it is full the oldest entry goes.
  void Add(const Evidence& evidence);

  // About `subject`, newest first, at most `most`.
  std::vector<EvidenceEntry> About(const NicKey& subject, size_t most) const;

  size_t size() const { return entries_.size(); }
  uint64_t forgotten() const { return forgotten_; }

 private:
  struct Series {
    std::string observer;
    NicKey subject;
    NicKey peer;
    int question = 0;
    friend auto operator<=>(const Series&, const Series&) = default;
  };
  static Series SeriesOf(const Evidence& evidence);
  void DropOldest();

  const size_t entries_max_;
  std::deque<EvidenceEntry> entries_;  // in the order of their sequences, which have no gaps
  std::map<Series, uint64_t> newest_;  // the sequence of each series' newest entry, while it is kept
  uint64_t next_sequence_ = 1;
  uint64_t forgotten_ = 0;
};

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_EVIDENCE_EVIDENCE_LOG_H_
