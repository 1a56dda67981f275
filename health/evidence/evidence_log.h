// The evidence that verdicts rest on, so that they can be explained: the last kEvidenceLogEntriesMax entries. No I/O, no clock.
// One thread at a time.
#ifndef R2CC_HEALTH_EVIDENCE_EVIDENCE_LOG_H_
#define R2CC_HEALTH_EVIDENCE_EVIDENCE_LOG_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "health/evidence/evidence.h"

namespace r2cc::health {

constexpr size_t kEvidenceLogEntriesMax = 4096;

struct EvidenceEntry {
  Evidence evidence;       // as it was seen the last time
  Nanos first_when = 0;
  uint64_t times = 1;      // how often it was seen from first_when to evidence.when
  uint64_t sequence = 0;   // grows with each new entry
};

class EvidenceLog {
 public:
  explicit EvidenceLog(size_t entries_max = kEvidenceLogEntriesMax) : entries_max_(entries_max) {}

  // Merge rule: evidence that says the same (kind, value, peer, detail) as the newest entry of the same observer and class about the same
  // subject is counted on that entry, so that a periodic or repeating probe does not push out what happened. When full the oldest
  // entry goes.
  void Add(const Evidence& evidence);

  // About `subject`, newest first, at most `most`.
  std::vector<EvidenceEntry> About(const NicKey& subject, size_t most) const;

  size_t size() const { return entries_.size(); }
  uint64_t forgotten() const { return forgotten_; }

 private:
  // Which entries replace each other: a link report is merged with link reports alone, a rate with rates.
  using Thread = std::pair<std::pair<std::string, NicKey>, int>;
  static Thread ThreadOf(const Evidence& evidence);

  const size_t entries_max_;
  std::deque<EvidenceEntry> entries_;         // oldest first; sequences are consecutive
  std::map<Thread, uint64_t> newest_;         // the sequence of each thread's newest entry
  uint64_t next_sequence_ = 1;
  uint64_t forgotten_ = 0;
};

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_EVIDENCE_EVIDENCE_LOG_H_
