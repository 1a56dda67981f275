#include "netplugin/transport/verbs/fence.h"

#include <array>
#include <cerrno>
#include <utility>

#include "base/core/check.h"
#include "netplugin/flow/mutant.h"
#include "netplugin/flow/tuning.h"

namespace r2cc::net::verbs {
namespace {

// As many as one step looks at.
constexpr size_t kPolledMost = 64;

}  // namespace

// The fence:
//
// | step        | ok                                       | failed                                 | device gone |
// |-------------|------------------------------------------|----------------------------------------|-------------|
// | kError      | kDrain                                   | kDestroy, unsound: nothing was flushed | kDone       |
// | kDrain      | kReset, or kDestroy                      | kReset, or kDestroy; unsound           | kDone       |
// | kReset      | kDestroy                                 | kDestroy; unsound                      | kDone       |
// | kDestroy    | kDone if all was sound, else kSecondLine | kSecondLine; unsound                   | kDone       |
// | kSecondLine | kDone                                    | kSecondLine: again later               | kDone       |
//
// A step that failed is not the end of it: what can be released is. But then the second line alone can prove it. Without a second line
// kDestroy is the last step: ok ends it, failed repeats it later.
FenceNext Next(FenceStep step, FenceEvent event, bool sound, FenceKind kind) {
  if (event == FenceEvent::kGone) return {FenceStep::kDone, sound};
  const bool ok = event == FenceEvent::kOk;
  const FenceStep after_drain = kind.reset_waits ? FenceStep::kReset : FenceStep::kDestroy;
  switch (step) {
    case FenceStep::kError: return {ok ? FenceStep::kDrain : FenceStep::kDestroy, sound && ok};
    case FenceStep::kDrain: return {after_drain, sound && ok};
    case FenceStep::kReset: return {FenceStep::kDestroy, sound && ok};
    case FenceStep::kDestroy:
      if (!kind.second_line) return {ok ? FenceStep::kDone : FenceStep::kDestroy, sound && ok};
      return {ok && sound ? FenceStep::kDone : FenceStep::kSecondLine, sound && ok};
    case FenceStep::kSecondLine: return {ok ? FenceStep::kDone : FenceStep::kSecondLine, sound};
    case FenceStep::kDone: break;
  }
  R2CC_CHECK(step != FenceStep::kDone);
  return {};
}

Fence::Fence(Verbs* verbs, const Target& target, Calls calls)
    : verbs_(verbs), target_(target), calls_(std::move(calls)), kind_{target.reset_waits, calls_.second_line != nullptr} {}

FenceEvent Fence::EventOf(int error) const {
  if (error == 0) return FenceEvent::kOk;
  if (IsActive(Mutant::kErrorIsGone) && (error == EIO || error == ENODEV)) return FenceEvent::kGone;
  return calls_.gone() ? FenceEvent::kGone : FenceEvent::kFailed;
}

// Before the error state: soft-RoCE does not look at what is posted in it. It needs no bytes.
bool Fence::PostOwn() {
  const ReceiveRequest own{.wr_id = target_.own_receive, .segments = {}};
  size_t posted = 0;
  return verbs_->PostReceive(target_.queue_pair, std::span(&own, 1), &posted) == 0;
}

FenceEvent Fence::Drain(Nanos now) {
  if (!posted_) return FenceEvent::kFailed;
  if (drain_until_ == 0) drain_until_ = now + tuning::kDrainMost;
  const uint64_t awaited = IsActive(Mutant::kNoOwnReceive) ? target_.newest_receive : target_.own_receive;
  // What completes besides is not told: it is replayed.
  std::array<Completion, kPolledMost> completions;
  bool flushed = false;
  for (size_t taken = kPolledMost; taken == kPolledMost;) {
    const int error = verbs_->Poll(target_.completions, completions, &taken);
    for (size_t i = 0; i < taken; ++i) {
      if (completions[i].wr_id != awaited) continue;
      if (completions[i].status == Status::kFlushed) flushed = true;
      // A peer that sends beyond its credit has used it. No other can be used up: the queue pair takes nothing any more.
      if (completions[i].status == Status::kSuccess) posted_ = PostOwn();
    }
    if (flushed) return FenceEvent::kOk;
    if (error != 0) return EventOf(error);
  }
  waits_ = now < drain_until_;
  return FenceEvent::kFailed;
}

FenceEvent Fence::Destroy() {
  if (destroyed_) return FenceEvent::kOk;
  const int error = verbs_->DestroyQueuePair(target_.queue_pair);
  destroyed_ = error == 0;
  return EventOf(error);
}

FenceEvent Fence::Do(Nanos now) {
  waits_ = false;
  switch (step_) {
    case FenceStep::kError:
      posted_ = IsActive(Mutant::kNoOwnReceive) || PostOwn();
      return EventOf(verbs_->SetState(target_.queue_pair, QueuePairState::kError));
    case FenceStep::kDrain: return Drain(now);
    case FenceStep::kReset: return EventOf(verbs_->SetState(target_.queue_pair, QueuePairState::kReset));
    case FenceStep::kDestroy: return Destroy();
    case FenceStep::kSecondLine: {
      // What could not be destroyed is tried again, so that it does not stay for ever.
      if (Destroy() == FenceEvent::kGone) return FenceEvent::kGone;
      const FenceEvent event = EventOf(calls_.second_line());
      if (event != FenceEvent::kOk || calls_.answers()) return event;
      return calls_.gone() ? FenceEvent::kGone : FenceEvent::kFailed;
    }
    case FenceStep::kDone: break;
  }
  R2CC_CHECK(step_ != FenceStep::kDone);
  return FenceEvent::kFailed;
}

std::optional<Nanos> Fence::Step(Nanos now) {
  const FenceStep before = step_;
  const FenceEvent event = Do(now);
  if (waits_) return tuning::kDrainEvery;
  const FenceNext next = Next(step_, event, sound_, kind_);
  step_ = next.step;
  sound_ = next.sound;
  if (step_ == FenceStep::kDone) {
    result_ = event == FenceEvent::kGone ? Result::kGone : Result::kProved;
    return std::nullopt;
  }
  if (before != step_) return 0;
  // The last step failed.
  wait_ = std::min(2 * std::max(wait_, tuning::kFenceSoon / 2), tuning::kSlowRetryLeast);
  if (wait_ == tuning::kSlowRetryLeast) result_ = Result::kUnproved;
  return wait_;
}

}  // namespace r2cc::net::verbs
