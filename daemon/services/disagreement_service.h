// Turns what `r2cc-observe agree --report` found into an event: ranks whose tensors should be equal and are not.
#ifndef R2CC_DAEMON_SERVICES_DISAGREEMENT_SERVICE_H_
#define R2CC_DAEMON_SERVICES_DISAGREEMENT_SERVICE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/core/caller.h"
#include "daemon/core/event_reporter.h"
#include "daemon/state/audit.h"
#include "proto/r2cc.pb.h"

namespace r2cc::daemon {

// The core's thread only. No NIC changes its state: a disagreement names no rail.
class DisagreementService {
 public:
  // Events of one share (core/caller.h): a burst, later one per interval. A job that goes wrong differs at every step, and one event is
  // enough to look at it. The interval is that of refused callers (state/audit.h): the audit keeps 1,024 records in memory, and reports
  // of a script must not displace those of operators.
  static constexpr uint64_t kBurst = 8;
  static constexpr Nanos kInterval = 3600 * kNanosPerSecond;
  // The longest name of a run, a point or a rank; longer ones are cut.
  static constexpr size_t kNameBytesMax = 128;
  // Ranks that the event names; the others are counted.
  static constexpr int kRanksShown = 8;

  // Both outlive it.
  DisagreementService(Audit* audit, EventReporter* reporter) : audit_(audit), reporter_(reporter) {}

  // `may`: whether the caller has the role. RESOURCE_EXHAUSTED: it reported too much; the next event counts what was left out.
  absl::StatusOr<v1::DisagreementReply> Report(const v1::DisagreementRequest& request, const Caller& caller, const absl::Status& may);

 private:
  absl::Status Check(const v1::DisagreementRequest& request, const Caller& caller, uint64_t* left_out);

  Audit* const audit_;
  EventReporter* const reporter_;
  std::map<std::string, RefusalAllowance> allowances_;  // by share
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_SERVICES_DISAGREEMENT_SERVICE_H_
