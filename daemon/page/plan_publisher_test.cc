// The page when other nodes report more than it can hold.
#include "daemon/page/plan_publisher.h"

#include <gtest/gtest.h>

#include "base/core/hash.h"
#include "base/fake_executor.h"
#include "daemon/io/fake_attach_server.h"
#include "daemon/io/fake_page_sink.h"

namespace r2cc::daemon {
namespace {

class PlanPublisherTest : public testing::Test {
 protected:
  static health::NodeState Node(const std::string& name, int nics, health::NicState state = health::NicState::kHealthy) {
    health::NodeState node;
    node.node = name;
    node.epoch.counter = 1;
    for (int nic = 0; nic < nics; ++nic) {
      health::NicStatus& status = node.nics.emplace_back();
      status.identity.name = "r" + std::to_string(nic);
      status.state = state;
    }
    return node;
  }
  bool Update() {
    return publisher_.Update(view_, [this] { return Epoch{1, ++counter_}; });
  }
  // The weight that jobs read; -1: the page does not speak of it.
  int Weight(const std::string& node, const std::string& nic) {
    std::string error;
    if (reader_ == nullptr) reader_ = plan::PageReader::Open(dup(page_->fd()), &error);
    EXPECT_NE(reader_, nullptr) << error;
    reader_->Refresh();
    const plan::PageEntry* entry = reader_->copy().Find(Fnv1a64(node), Fnv1a64(nic));
    return entry == nullptr ? -1 : entry->weight_permille;
  }

  FakeExecutor core_;
  EventLog events_;
  EventReporter reporter_{&events_, "own", &core_, [] { return int64_t{0}; }};
  FakeAttachServer jobs_;
  std::unique_ptr<SharedPage> page_ = *SharedPage::Create();
  std::unique_ptr<plan::PageReader> reader_;
  PlanPublisher publisher_{page_.get(), &jobs_, &reporter_};
  health::ClusterView view_{"own"};
  uint64_t counter_ = 0;
};

// Ghosts, or just a very large cluster: the page is full, and the own NICs' verdicts and those of the jobs' nodes go out all the same.
TEST_F(PlanPublisherTest, GhostNodesDoNotFreezeThePlan) {
  view_.SetOwn(Node("own", 2), 0);
  view_.Merge(Node("peer", 2), 0);
  ASSERT_TRUE(Update());
  EXPECT_TRUE(publisher_.Alarms().empty());
  publisher_.SetJobPeers({{"uid 1000", {"peer"}}});
  for (int ghost = 0; ghost < 4100; ++ghost) view_.Merge(Node("ghost" + std::to_string(ghost), 16), 0);
  ASSERT_TRUE(Update()) << publisher_.trouble();
  ASSERT_EQ(publisher_.Alarms().size(), 1u);
  EXPECT_EQ(publisher_.Alarms()[0].substr(0, 46), "the plan page is full: it leaves out 517 nodes");
  EXPECT_EQ(Weight("own", "r0"), 1000);
  EXPECT_EQ(Weight("peer", "r0"), 1000);
  EXPECT_EQ(Weight("ghost0", "r0"), 1000) << "those that fit";
  EXPECT_EQ(Weight("ghost999", "r0"), -1);

  health::NodeState failed = Node("own", 2, health::NicState::kFailed);
  failed.epoch.counter = 2;
  view_.SetOwn(failed, 0);
  failed.node = "peer";
  view_.Merge(failed, 0);
  ASSERT_TRUE(Update()) << publisher_.trouble();
  EXPECT_EQ(Weight("own", "r0"), 0);
  EXPECT_EQ(Weight("peer", "r0"), 0);

  // A job that begins to talk to a node brings it in.
  publisher_.SetJobPeers({{"uid 1000", {"peer", "ghost999"}}});
  ASSERT_TRUE(Update()) << publisher_.trouble();
  EXPECT_EQ(Weight("ghost999", "r0"), 1000);
  EXPECT_EQ(Weight("own", "r0"), 0);
}

TEST_F(PlanPublisherTest, ARefusedPlanIsAnAlarm) {
  FakePageSink page;
  PlanPublisher publisher(&page, &jobs_, &reporter_);
  view_.SetOwn(Node("own", 1), 0);
  page.Fail(absl::InternalError("no room"));
  EXPECT_FALSE(publisher.Update(view_, [] { return Epoch{1, 1}; }));
  EXPECT_EQ(publisher.Alarms(), std::vector<std::string>{"the jobs' page does not follow the view: a plan was refused: no room"});
  page.Fail(absl::OkStatus());
  EXPECT_TRUE(publisher.Update(view_, [] { return Epoch{1, 2}; }));
  EXPECT_TRUE(publisher.Alarms().empty());
}

}  // namespace
}  // namespace r2cc::daemon
