#include "daemon/rpc/put_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/fake_executor.h"

namespace r2cc::daemon {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class PutQueueTest : public testing::Test {
 protected:
  std::vector<std::string> Sent() { return std::exchange(sent_, {}); }
  void Answer(bool ok) { std::exchange(done_, nullptr)(ok); }

  FakeExecutor executor_;
  std::vector<std::string> sent_;
  std::function<void(bool)> done_;
  PutQueue queue_{&executor_, [this](const std::string& key, const std::string& value, int64_t, std::function<void(bool)> done) {
                    sent_.push_back(key + "=" + value);
                    done_ = std::move(done);
                  }};
};

TEST_F(PutQueueTest, TheNewestValueFollowsTheOneUnderWay) {
  queue_.Put("k", "1", 0);
  queue_.Put("k", "2", 0);
  queue_.Put("k", "3", 0);
  EXPECT_THAT(Sent(), ElementsAre("k=1"));
  Answer(true);
  EXPECT_THAT(Sent(), ElementsAre("k=3"));
  Answer(true);
  queue_.Retry(true);
  EXPECT_THAT(Sent(), IsEmpty());
}

TEST_F(PutQueueTest, AFailedPutIsTriedAgain) {
  queue_.Put("k", "1", 0);
  Answer(false);
  EXPECT_THAT(Sent(), ElementsAre("k=1"));
  queue_.Retry(false);
  EXPECT_THAT(Sent(), ElementsAre("k=1"));
  queue_.Retry(false);
  EXPECT_THAT(Sent(), IsEmpty()) << "it is under way";
}

TEST_F(PutQueueTest, LeasesAreRenewedInTimeWhereThatIsWanted) {
  queue_.Put("k", "1", 3000);
  Answer(true);
  Sent();
  executor_.Advance(999 * kNanosPerMs);
  queue_.Retry(true);
  EXPECT_THAT(Sent(), IsEmpty());
  executor_.Advance(kNanosPerMs);
  queue_.Retry(false);
  EXPECT_THAT(Sent(), IsEmpty());
  queue_.Retry(true);
  EXPECT_THAT(Sent(), ElementsAre("k=1"));
}

TEST_F(PutQueueTest, AStoreWithANewMemoryGetsEverything) {
  queue_.Put("k", "1", 0);
  Answer(true);
  Sent();
  queue_.PutAllAgain();
  EXPECT_THAT(Sent(), ElementsAre("k=1"));
}

}  // namespace
}  // namespace r2cc::daemon
