// The embedded store as the daemon that serves it sees it, with leases in simulated time.
#include "daemon/rpc/store_service.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/fake_executor.h"

namespace r2cc::daemon {
namespace {

class LocalStoreTest : public testing::Test {
 protected:
  LocalStoreTest() {
    store_.Start("/r2cc/nodes/",
                 {[this](const StoreChange& change) { changes_.push_back((change.deleted ? "-" : "+") + change.key + "=" + change.value); },
                  [this](const std::string& state) { state_ = state; }});
  }

  FakeExecutor core_;
  StoreService service_{&core_, nullptr, "/r2cc/nodes/"};  // nobody calls over the network
  LocalStore store_{&core_, &service_};
  std::vector<std::string> changes_;
  std::string state_;
};

TEST_F(LocalStoreTest, KeepsItsOwnEntryAndForgetsWhoFallsSilent) {
  EXPECT_EQ(state_, "serving");
  store_.Put("/r2cc/nodes/n0", "own", 1000);
  ASSERT_TRUE(service_.PutEntry("/r2cc/nodes/n1", "other", 1000).ok());
  ASSERT_TRUE(service_.PutEntry("/elsewhere", "x", 0).ok());
  core_.Advance(900 * kNanosPerMs);
  EXPECT_EQ(changes_, (std::vector<std::string>{"+/r2cc/nodes/n0=own", "+/r2cc/nodes/n1=other"}));
  core_.Advance(60 * kNanosPerSecond);
  ASSERT_EQ(changes_.size(), 3u);
  EXPECT_EQ(changes_[2], "-/r2cc/nodes/n1=");
}

TEST_F(LocalStoreTest, ALateWatcherReceivesWhatIsThere) {
  store_.Put("/r2cc/nodes/n0", "own", 1000);
  std::vector<std::string> late;
  const auto id = service_.AddWatcher("/r2cc/", [&](const StoreChange& change) { late.push_back(change.key); });
  EXPECT_EQ(late.size(), 1u);
  store_.Put("/r2cc/nodes/n0", "newer", 1000);
  EXPECT_EQ(late.size(), 2u);
  service_.RemoveWatcher(id);
  store_.Put("/r2cc/nodes/n0", "newest", 1000);
  EXPECT_EQ(late.size(), 2u);
}

TEST_F(LocalStoreTest, ANodeHasABoundedNumberOfWatches) {
  for (size_t i = 0; i < StoreService::kWatchesPerCallerMax; ++i) ASSERT_TRUE(service_.BeginWatch("node n1"));
  EXPECT_FALSE(service_.BeginWatch("node n1"));
  EXPECT_TRUE(service_.BeginWatch("node n2"));
  service_.EndWatch("node n1");
  EXPECT_TRUE(service_.BeginWatch("node n1"));
}

TEST_F(LocalStoreTest, NothingIsReceivedAfterStop) {
  store_.Put("/r2cc/nodes/n0", "own", 1000);
  store_.Stop();
  core_.Advance(60 * kNanosPerSecond);
  EXPECT_TRUE(changes_.empty());
}

}  // namespace
}  // namespace r2cc::daemon
