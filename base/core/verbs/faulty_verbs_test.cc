#include "base/core/verbs/faulty_verbs.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <vector>

#include "base/core/verbs/fake_pair.h"

namespace r2cc::verbs {
namespace {

using Faulty = FakePair;

TEST_F(Faulty, FaultsAreInjectedAndCounted) {
  Make();
  FaultyVerbs faulty(ends_[0].verbs.get());
  faulty.FailCall(Call::kReset, 2, EIO);
  faulty.SlowCall(Call::kError, 3 * kNanosPerMs);
  faulty.Inject(ends_[0].context, {.kind = AsyncKind::kDeviceFatal});
  QueuePairInfo pairs[2];
  for (QueuePairInfo& pair : pairs)
    ASSERT_EQ(faulty.CreateQueuePair(ends_[0].domain, {ends_[0].queue, ends_[0].queue, 4, 4, 1, 1, 0}, &pair), 0);
  EXPECT_EQ(faulty.SetState(pairs[0].id, QueuePairState::kReset), 0);
  EXPECT_EQ(faulty.SetState(pairs[0].id, QueuePairState::kReset), EIO);
  EXPECT_EQ(faulty.SetState(pairs[0].id, QueuePairState::kReset), 0);
  EXPECT_EQ(faulty.TakeTime(), 0);
  EXPECT_EQ(faulty.SetState(pairs[0].id, QueuePairState::kError), 0);
  EXPECT_EQ(faulty.TakeTime(), 3 * kNanosPerMs);
  AsyncEvent event;
  ASSERT_EQ(faulty.ReadAsyncEvent(ends_[0].context, &event), 0);
  EXPECT_EQ(event.kind, AsyncKind::kDeviceFatal);
  faulty.AckAsyncEvent(ends_[0].context, event);
  EXPECT_EQ(faulty.ReadAsyncEvent(ends_[0].context, &event), EAGAIN);
  EXPECT_EQ(faulty.injected(), 3u);
}

TEST_F(Faulty, TheNthCompletionHasTheChosenStatus) {
  Make();
  FaultyVerbs faulty(ends_[0].verbs.get());
  faulty.FailCompletion(2, Status::kRemoteOperation);
  for (uint64_t i = 0; i < 3; ++i) ASSERT_EQ(Send(SendKind::kWrite, i, 0, 10), 0);
  time_.RunFor(kNanosPerMs);
  std::vector<Completion> got(8);
  size_t taken = 0;
  ASSERT_EQ(faulty.Poll(ends_[0].queue, got, &taken), 0);
  ASSERT_EQ(taken, 3u);
  EXPECT_EQ(got[0].status, Status::kSuccess);
  EXPECT_EQ(got[1].status, Status::kRemoteOperation);
  EXPECT_EQ(got[2].status, Status::kSuccess);
  EXPECT_EQ(faulty.injected(), 1u);
}

}  // namespace
}  // namespace r2cc::verbs
