// Faults planted into variants of the plain plugin, to prove that r2cc-perf notices each.
#ifndef R2CC_TESTS_CONTROL_BUG_H_
#define R2CC_TESTS_CONTROL_BUG_H_

#include <cstdint>

namespace r2cc::control {

enum class Bug {
  kNone,
  kLateWrite,     // the receiver writes into a buffer that it reported done two messages ago
  kSwap,          // the sender exchanges two messages that follow each other
  kEarlyDone,     // a send is reported done before its data left the buffer
  kStopDelivery,  // after kHealthyMessages the sender goes silent
  kError,         // after kHealthyMessages the receiver fails
};

constexpr int64_t kHealthyMessages = 20;

#ifndef R2CC_CONTROL_BUG
#define R2CC_CONTROL_BUG kNone
#endif
constexpr Bug kBug = Bug::R2CC_CONTROL_BUG;

}  // namespace r2cc::control

#endif  // R2CC_TESTS_CONTROL_BUG_H_
