// Names of NICs that were made to have the hashes of others.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "plan/page/hostile_page.h"

namespace r2cc::plan {
namespace {

// Two NICs of one hash; and a name for a NIC of n3 by which "n3/NAME" has the hash of "n1/rail0". Found in seconds (LLL, Babai).
constexpr char kTwin[] = "8yn0iYCKYHlIj4-BwPqk", kOtherTwin[] = "GReLUrM4wMqfg9yzV3KQ";
constexpr char kAsN1Rail0[] = "fG0oF9PXZaxRaKAYT";
static_assert(Fnv1a64(kTwin) == Fnv1a64(kOtherTwin));
static_assert(Fnv1a64("n3/fG0oF9PXZaxRaKAYT") == Fnv1a64("n1/rail0"));

class PageConflictsTest : public testing::Test {
 protected:
  PageConflictsTest() : writer_(PageWriter::Create(&error_)) { reader_ = PageReader::Open(dup(writer_->fd()), &error_); }
  // As a plugin of this release finds it.
  const PageCopy& Published(const Plan& plan, const std::string& own_node) {
    EXPECT_TRUE(writer_->Publish(plan, 1, &error_, own_node)) << error_;
    EXPECT_EQ(reader_->Refresh(), PageReader::Read::kNew);
    return reader_->copy();
  }
  static Plan Of(std::vector<PlannedNic> nics) {
    static uint64_t counter = 0;
    return {.epoch = {1000, ++counter}, .nics = std::move(nics)};
  }

  std::string error_;
  std::unique_ptr<PageWriter> writer_;
  std::unique_ptr<PageReader> reader_;
};

TEST_F(PageConflictsTest, TwoNicsOfOneHashFreezeNothing) {
  const PageCopy& copy = Published(Of({{"n1", "rail0", PlannedState::kFailed, 0},
                                       {"n3", kTwin, PlannedState::kHealthy, 1000},
                                       {"n3", kOtherTwin, PlannedState::kFailed, 0}}),
                                   "n0");
  EXPECT_EQ(copy.Find("n1", "rail0")->state, static_cast<uint8_t>(PlannedState::kFailed));
  EXPECT_EQ(copy.Find("n3", kTwin)->weight_permille, 1000);
  ASSERT_NE(copy.Find("n3", kOtherTwin), nullptr);
  EXPECT_EQ(copy.Find("n3", kOtherTwin)->weight_permille, 0);
  ASSERT_EQ(writer_->conflicts().size(), 1u);
  EXPECT_EQ(writer_->conflicts()[0].nic, kOtherTwin);
  EXPECT_EQ(writer_->conflicts()[0].other_nic, kTwin);
  Published(Of({{"n1", "rail0", PlannedState::kFailed, 0}}), "n0");
  EXPECT_TRUE(writer_->conflicts().empty());
}

TEST_F(PageConflictsTest, ADrainOfANameOfTheSameHashSteersNobody) {
  const PageCopy& copy = Published(Of({{"n1", "rail0"}, {"n3", kAsN1Rail0, PlannedState::kHealthy, 1000, {"train"}}}), "n0");
  EXPECT_FALSE(copy.DrainedFor("train", "n1", "rail0"));
  EXPECT_TRUE(copy.DrainedFor("train", "n3", kAsN1Rail0));
  // Plugins that know hashes alone do not find it either.
  EXPECT_EQ(copy.Find(Fnv1a64("n1/rail0"), JobHash("train")), nullptr);
}

TEST_F(PageConflictsTest, TheOwnNodesEntriesKeepTheirPlaces) {
  const Plan plan =
      Of({{"n1", "rail0", PlannedState::kHealthy, 1000, {"train"}}, {"n3", kAsN1Rail0, PlannedState::kHealthy, 1000, {"other"}}});
  const PageCopy& copy = Published(plan, "n3");
  EXPECT_NE(copy.Find(Fnv1a64("n1/rail0"), JobHash("other")), nullptr) << "where an old plugin of n3 looks";
  EXPECT_EQ(copy.Find(Fnv1a64("n1/rail0"), JobHash("train")), nullptr);
  EXPECT_TRUE(copy.DrainedFor("train", "n1", "rail0"));
  EXPECT_FALSE(copy.DrainedFor("other", "n1", "rail0"));
  ASSERT_EQ(writer_->conflicts().size(), 1u);
  EXPECT_EQ(writer_->conflicts()[0].node, "n1");
}

TEST_F(PageConflictsTest, APathOfANameOfTheSameHashForbidsNoSoundOne) {
  Plan plan = Of({{"n1", "rail0"}, {"n2", "rail0"}, {"n3", kAsN1Rail0}});
  plan.broken_paths = {{"n2", "rail0", "n3", kAsN1Rail0}};
  const PageCopy& copy = Published(plan, "n0");
  EXPECT_TRUE(copy.PathBroken("n2", "rail0", "n3", kAsN1Rail0));
  EXPECT_FALSE(copy.PathBroken("n1", "rail0", "n2", "rail0"));
}

TEST_F(PageConflictsTest, JobsOfOneHashOnOneNicFreezeNothing) {
  // "job " and a tail: two names of one hash are as easily found; here the same one twice represents them.
  const PageCopy& copy = Published(Of({{"n1", "rail0", PlannedState::kHealthy, 1000, {"train", "train"}}}), "n0");
  EXPECT_TRUE(copy.DrainedFor("train", "n1", "rail0"));
}

// Without a tag of its own an entry is nobody's, with any hashes.
TEST(PageTags, AForeignTagIsNoEntry) {
  PageCopy copy = PageCopyOf(PlanOf(1, 2), {7, 8});
  ASSERT_NE(copy.Find("node0", "nic1"), nullptr);
  copy.key = {7, 9};
  EXPECT_EQ(copy.Find("node0", "nic1"), nullptr);
  copy.tagged = false;
  EXPECT_NE(copy.Find("node0", "nic1"), nullptr) << "a page of an older release";
}

}  // namespace
}  // namespace r2cc::plan
