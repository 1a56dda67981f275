// Detects that the job's requests make no progress. Pure.
#ifndef R2CC_NETPLUGIN_TRANSPORT_PROGRESS_WATCH_H_
#define R2CC_NETPLUGIN_TRANSPORT_PROGRESS_WATCH_H_

#include <cstdint>
#include <utility>

#include "base/core/clock.h"
#include "netplugin/flow/tuning.h"

namespace r2cc::net {

class ProgressWatch {
 public:
  // Of all peers of the process.
  struct Facts {
    uint64_t outstanding = 0;
    uint64_t done = 0;
    uint64_t moved_bytes = 0;  // sent and received over the rails
  };
  struct Verdict {
    bool report = false;
    Nanos waited = 0;  // 0: it moves, or has nothing outstanding
  };

  // A request that is done, a byte that moves, or the first post after nothing was outstanding is progress. Time between two late looks is
  // not counted: this process was stopped itself.
  Verdict Look(const Facts& facts, Nanos now) {
    const Nanos passed = now - std::exchange(looked_, now);
    const bool moves =
        facts.outstanding == 0 || facts_.outstanding == 0 || facts.done != facts_.done || facts.moved_bytes != facts_.moved_bytes;
    facts_ = facts;
    waited_ = moves || passed > 3 * tuning::kLookEvery ? 0 : waited_ + passed;
    if (waited_ < tuning::kProgressReportAfter) return {std::exchange(reported_, false), 0};
    reported_ = true;
    return {true, waited_};
  }
  bool due(Nanos now) const { return now - looked_ >= tuning::kLookEvery; }

 private:
  Facts facts_;
  Nanos looked_ = 0;
  Nanos waited_ = 0;
  bool reported_ = false;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_PROGRESS_WATCH_H_
