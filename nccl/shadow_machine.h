// By which way a communicator's AllReduces go: NCCL's own choice, a child whose ranks are in another order, for a seat in NCCL's tree, or
// CollNet. CollNet needs no child: NCCL refuses it to a child whose parent has it. A table of states and events. All ranks feed it the same
// vectors at the same calls, so all ranks are in the same state at the same call. Pure.
//
// Two vectors in a row must agree before anything changes. A way is prepared at a call that all ranks know, and is used once all ranks have
// reported, in a later vector, that they are ready for it.
#ifndef R2CC_NCCL_SHADOW_MACHINE_H_
#define R2CC_NCCL_SHADOW_MACHINE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "nccl/record.h"
#include "plan/collective/ways.h"

namespace r2cc::nccl {

// A child needs so much of each GPU: 18 MiB were measured with four channels and without NVLS, which takes hundreds.
constexpr uint32_t kChildMib = 512;
// After a child that some rank could not make: this many vectors with the same wish until it is tried again.
constexpr uint32_t kVectorsRefused = 64;

enum class ShadowState : uint8_t {
  kParent,   // no gain
  kGain,     // seen once
  kMaking,   // this rank has made the child, or failed to
  kSeated,   // the child is in use
  kLoss,     // so it is, and the last vector wanted something else
  kRefused,  // some rank could not make it
  kOff,      // never again
};
enum class ShadowEvent : uint8_t {
  kStay,     // the parent is as good
  kSame,     // the way and order that were wanted last
  kOther,    // others
  kReady,    // kSame, and all ranks have the child
  kRetry,    // kSame, and a refusal is long ago
  kNoChild,  // others, for which there is no memory
  kUnfit,    // this communicator cannot have a seat
};
enum class ShadowAction : uint8_t {
  kNothing,
  kMake,   // the child of wanted(), now; report in the next vector whether it exists
  kUse,    // it is in use from this call on
  kLeave,  // the parent is in use from this call on; the child is kept
  kDrop,   // the child, if there is one
};

class ShadowMachine {
 public:
  ShadowAction Step(const Vector& vector);

  ShadowState state() const { return state_; }
  bool is_off() const { return state_ == ShadowState::kOff; }
  // Its AllReduces do not go by NCCL's own choice.
  bool is_switched() const { return state_ == ShadowState::kSeated || state_ == ShadowState::kLoss; }
  bool uses_child() const { return is_switched() && wanted_.way == plan::Way::kTree; }
  // The parent does smaller calls.
  uint64_t bytes_min() const { return wanted_.bytes_min; }
  const plan::WayDecision& wanted() const { return wanted_; }
  // The number of the child that is made or in use, counted from 1.
  uint32_t child() const { return child_; }

 private:
  ShadowEvent EventOf(const Vector& vector);

  ShadowState state_ = ShadowState::kParent;
  plan::WayDecision wanted_;
  uint32_t child_ = 0;
  uint32_t refused_ = 0;  // vectors since then
};

struct ShadowCell {
  ShadowState next;
  ShadowAction action;
};
ShadowCell ShadowTable(ShadowState state, ShadowEvent event);

}  // namespace r2cc::nccl

#endif  // R2CC_NCCL_SHADOW_MACHINE_H_
