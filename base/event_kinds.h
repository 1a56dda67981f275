// The kinds of events: a closed list.
#ifndef R2CC_BASE_EVENT_KINDS_H_
#define R2CC_BASE_EVENT_KINDS_H_

#include <algorithm>
#include <iterator>
#include <string_view>

namespace r2cc {

// In alphabetical order. //tests/docs:event_kinds_test compares the list with what r2ccd reports.
constexpr std::string_view kEventKinds[] = {
    "daemon-started", "disagreement", "drill",          "duplicate-node", "fabric",     "failover",      "job-attached",
    "job-ended",      "job-gave-up",  "job-hang",       "job-progress",   "link-flaps", "link-unproven", "link-up",
    "nic-address",    "nic-state",    "node-forgotten", "operation-held", "operator",   "peer-anew",     "peer-connected",
    "peer-held",      "peer-lost",    "plan-published", "plan-refused",   "state",      "stranger",
};

constexpr bool IsEventKind(std::string_view kind) {
  return std::find(std::begin(kEventKinds), std::end(kEventKinds), kind) != std::end(kEventKinds);
}

}  // namespace r2cc

#endif  // R2CC_BASE_EVENT_KINDS_H_
