#include "netplugin/transport/verbs/fence.h"

#include <array>
#include <cerrno>
#include <utility>

#include "base/core/check.h"

namespace r2cc::net::verbs {
namespace {

FenceEvent EventOf(int error) {
  if (error == 0) return FenceEvent::kOk;
  return error == EIO || error == ENODEV ? FenceEvent::kGone : FenceEvent::kFailed;
}

// As many as one step looks at.
constexpr size_t kPolledMost = 64;

}  // namespace

// The fence:
//
// | step        | ok                                 | failed                                       | device gone |
// |-------------|------------------------------------|----------------------------------------------|-------------|
// | kError      | kDrain                             | kDestroy, unsound: nothing was flushed       | kDone       |
// | kDrain      | kReset, or kDestroy                | kReset, or kDestroy; unsound                 | kDone       |
// | kReset      | kDestroy                           | kDestroy; unsound                            | kDone       |
// | kDestroy    | kDone if all was sound, else kSecondLine | kSecondLine; unsound                   | kDone       |
// | kSecondLine | kDone                              | kSecondLine: again later                     | kDone       |
//
// A step that failed is not the end of it: what can be released is. But then the second line alone can prove it.
FenceNext Next(FenceStep step, FenceEvent event, bool sound, bool reset_waits) {
  if (event == FenceEvent::kGone) return {FenceStep::kDone, sound};
  const bool ok = event == FenceEvent::kOk;
  const FenceStep after_drain = reset_waits ? FenceStep::kReset : FenceStep::kDestroy;
  switch (step) {
    case FenceStep::kError: return {ok ? FenceStep::kDrain : FenceStep::kDestroy, sound && ok};
    case FenceStep::kDrain: return {after_drain, sound && ok};
    case FenceStep::kReset: return {FenceStep::kDestroy, sound && ok};
    case FenceStep::kDestroy: return {ok && sound ? FenceStep::kDone : FenceStep::kSecondLine, sound && ok};
    case FenceStep::kSecondLine: return {ok ? FenceStep::kDone : FenceStep::kSecondLine, sound};
    case FenceStep::kDone: break;
  }
  R2CC_CHECK(step != FenceStep::kDone);
  return {};
}

Fence::Fence(Verbs* verbs, const Target& target, std::function<void()> before_destroy, std::function<int()> second_line)
    : verbs_(verbs), target_(target), before_destroy_(std::move(before_destroy)), second_line_(std::move(second_line)) {}

FenceEvent Fence::Drain(Nanos now) {
  if (!target_.has_receive) return FenceEvent::kFailed;
  if (drain_until_ == 0) drain_until_ = now + kDrainMost;
  // What completes besides is not told: it is replayed.
  std::array<Completion, kPolledMost> completions;
  size_t taken = 0;
  const int error = verbs_->Poll(target_.completions, completions, &taken);
  for (size_t i = 0; i < taken; ++i)
    flushed_ |= completions[i].wr_id == target_.newest_receive && completions[i].status == Status::kFlushed;
  if (flushed_) return FenceEvent::kOk;
  if (error != 0) return EventOf(error);
  waits_ = now < drain_until_;
  return FenceEvent::kFailed;
}

FenceEvent Fence::Do(Nanos now) {
  waits_ = false;
  switch (step_) {
    case FenceStep::kError: return EventOf(verbs_->SetState(target_.queue_pair, QueuePairState::kError));
    case FenceStep::kDrain: return Drain(now);
    case FenceStep::kReset: return EventOf(verbs_->SetState(target_.queue_pair, QueuePairState::kReset));
    case FenceStep::kDestroy: {
      if (!std::exchange(successor_made_, true) && before_destroy_) before_destroy_();
      const int error = verbs_->DestroyQueuePair(target_.queue_pair);
      destroyed_ = error == 0 || EventOf(error) == FenceEvent::kGone;
      return EventOf(error);
    }
    case FenceStep::kSecondLine: {
      // What could not be destroyed is tried again, so that it does not stay for ever.
      if (!destroyed_) destroyed_ = verbs_->DestroyQueuePair(target_.queue_pair) == 0;
      return EventOf(second_line_ ? second_line_() : EOPNOTSUPP);
    }
    case FenceStep::kDone: break;
  }
  R2CC_CHECK(step_ != FenceStep::kDone);
  return FenceEvent::kFailed;
}

std::optional<Nanos> Fence::Step(Nanos now) {
  const FenceStep before = step_;
  const FenceEvent event = Do(now);
  if (waits_) return kDrainEvery;
  const FenceNext next = Next(step_, event, sound_, target_.reset_waits);
  step_ = next.step;
  sound_ = next.sound;
  if (step_ == FenceStep::kDone) {
    result_ = event == FenceEvent::kGone ? Result::kGone : Result::kProved;
    return std::nullopt;
  }
  if (before != FenceStep::kSecondLine || step_ != FenceStep::kSecondLine) return 0;
  result_ = Result::kUnproved;
  return kFenceAgainAfter;
}

}  // namespace r2cc::net::verbs
