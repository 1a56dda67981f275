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

// An event that says nothing new is dropped before it comes here. So e.g. (HEALTHY, link-up) cannot happen, because a healthy NIC's
// link is known to be up; and (FAILED, suspected) cannot, because complaints about a dead NIC are not kept. A failed NIC stays FAILED
// under a drain, a drained one DRAINED under everything but a failure: what lies beneath is remembered and shows afterwards.
// clang-format off
constexpr NicStep kTable[kNicEvents][kNicStates] = {
    //                   HEALTHY    DEGRADED   SUSPECT    FAILED     PROVING    DRAINED
    /* link-up       */ {kNever,    kNever,    kNever,    kMemory,   kMemory,   kStay},
    /* link-down     */ {kFailed,   kFailed,   kFailed,   kStay,     kFailed,   kFailed},
    /* impaired      */ {kDegraded, kNever,    kStay,     kStay,     kStay,     kStay},
    /* unimpaired    */ {kNever,    kHealthy,  kStay,     kStay,     kStay,     kStay},
    /* suspected     */ {kSuspect,  kSuspect,  kNever,    kNever,    kStay,     kStay},
    /* forgiven      */ {kNever,    kNever,    kMemory,   kNever,    kStay,     kStay},
    /* drain         */ {kDrained,  kDrained,  kDrained,  kStay,     kDrained,  kNever},
    /* undrain       */ {kNever,    kNever,    kNever,    kStay,     kNever,    kMemory},
    /* drill-fail    */ {kFailed,   kFailed,   kFailed,   kStay,     kFailed,   kFailed},
    /* drill-restore */ {kNever,    kNever,    kNever,    kMemory,   kNever,    kNever},
    /* silent        */ {kFailed,   kFailed,   kFailed,   kStay,     kFailed,   kFailed},
    /* answered      */ {kNever,    kNever,    kNever,    kMemory,   kNever,    kNever},
    /* proved        */ {kNever,    kNever,    kNever,    kStay,     kMemory,   kStay},
    /* forgotten     */ {kNever,    kNever,    kMemory,   kNever,    kStay,     kStay},
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
