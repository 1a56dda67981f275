#include "health/view/nic_table.h"

#include "base/core/check.h"

namespace r2cc::health {
namespace {

constexpr NicStep kStay = NicStep::kStay;
constexpr NicStep kHealthy = NicStep::kHealthy;
constexpr NicStep kDegraded = NicStep::kDegraded;
constexpr NicStep kSuspect = NicStep::kSuspect;
constexpr NicStep kFailed = NicStep::kFailed;
constexpr NicStep kDrained = NicStep::kDrained;
constexpr NicStep kMemory = NicStep::kRemembered;
constexpr NicStep kNever = NicStep::kImpossible;

// An event without news is dropped before it comes here. So e.g. (HEALTHY, link-up) cannot happen, because a healthy NIC's
// link is known to be up; and (FAILED, suspected) cannot, because complaints about a dead NIC are not kept. A failed NIC stays FAILED
// under a drain, a drained one DRAINED under everything but a failure: what lies beneath is remembered and shows afterwards. A NIC without
// a cable is UNCABLED under a drain, and a drill fails it like any other.
// clang-format off
constexpr NicStep kTable[kNicEvents][kNicStates] = {
    //                   HEALTHY    DEGRADED   SUSPECT    FAILED     PROVING    DRAINED    UNCABLED
    /* link-up       */ {kNever,    kNever,    kNever,    kMemory,   kMemory,   kStay,     kMemory},
    /* link-down     */ {kFailed,   kFailed,   kFailed,   kStay,     kFailed,   kFailed,   kFailed},
    /* impaired      */ {kDegraded, kNever,    kStay,     kStay,     kStay,     kStay,     kStay},
    /* unimpaired    */ {kNever,    kHealthy,  kStay,     kStay,     kStay,     kStay,     kStay},
    /* suspected     */ {kSuspect,  kSuspect,  kNever,    kNever,    kStay,     kStay,     kNever},
    /* forgiven      */ {kNever,    kNever,    kMemory,   kNever,    kStay,     kStay,     kNever},
    /* drain         */ {kDrained,  kDrained,  kDrained,  kStay,     kDrained,  kNever,    kStay},
    /* undrain       */ {kNever,    kNever,    kNever,    kStay,     kNever,    kMemory,   kStay},
    /* drill-fail    */ {kFailed,   kFailed,   kFailed,   kStay,     kFailed,   kFailed,   kFailed},
    /* drill-restore */ {kNever,    kNever,    kNever,    kMemory,   kNever,    kNever,    kNever},
    /* silent        */ {kFailed,   kFailed,   kFailed,   kStay,     kFailed,   kFailed,   kNever},
    /* answered      */ {kNever,    kNever,    kNever,    kMemory,   kNever,    kNever,    kNever},
    /* no-cable      */ {kFailed,   kFailed,   kFailed,   kMemory,   kMemory,   kMemory,   kNever},
    /* proved        */ {kNever,    kNever,    kNever,    kStay,     kMemory,   kStay,     kNever},
    /* forgotten     */ {kNever,    kNever,    kMemory,   kNever,    kStay,     kStay,     kNever},
};
// clang-format on

}  // namespace

NicStep StepFor(NicState state, NicEvent event) {
  const int row = static_cast<int>(event);
  const int column = static_cast<int>(state);
  R2CC_CHECK(row >= 0 && row < kNicEvents && column >= 0 && column < kNicStates);
  return kTable[row][column];
}

}  // namespace r2cc::health
