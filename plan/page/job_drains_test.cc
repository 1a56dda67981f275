// Drains for single jobs, and NICs that an operator took away, on a page.
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "base/core/hash.h"
#include "plan/page/page.h"

namespace r2cc::plan {
namespace {

Plan PlanOf(uint64_t counter, size_t nics) {
  Plan plan;
  plan.epoch = {1000, counter};
  for (size_t i = 0; i < nics; ++i)
    plan.nics.push_back({"node" + std::to_string(i / 8), "nic" + std::to_string(i % 8), PlannedState::kHealthy, 1000});
  return plan;
}

TEST(JobDrains, AreNextToTheNicAndAreBounded) {
  Plan plan = PlanOf(1, 2);
  plan.nics[1].drained_jobs = {"eval", "train"};
  PageCopy copy = PageCopyOf(plan);
  EXPECT_EQ(copy.entries.size(), 4u);
  EXPECT_TRUE(copy.DrainedFor("train", "node0", "nic1"));
  EXPECT_FALSE(copy.DrainedFor("train", "node0", "nic0"));
  EXPECT_FALSE(copy.DrainedFor("other", "node0", "nic1"));
  EXPECT_EQ(copy.Find(Fnv1a64("node0"), Fnv1a64("nic1"))->weight_permille, 1000) << "for the others";

  plan = PlanOf(2, kJobDrainsMax + 9);
  for (PlannedNic& nic : plan.nics) nic.drained_jobs = {"train"};
  copy = PageCopyOf(plan);
  EXPECT_EQ(copy.entries.size(), plan.nics.size() + kJobDrainsMax);
  std::string error;
  const auto writer = PageWriter::Create(&error);
  EXPECT_TRUE(writer->Publish(plan, 1, &error)) << error;
  const auto reader = PageReader::Open(dup(writer->fd()), &error);
  EXPECT_EQ(reader->Refresh(), PageReader::Read::kNew);
  EXPECT_TRUE(reader->copy().DrainedFor("train", "node0", "nic0"));
}

TEST(OnPurpose, IsOnThePageAsLongAsItHasRoom) {
  Plan plan = PlanOf(1, 3);
  plan.nics[1].state = PlannedState::kFailed;
  plan.nics[1].weight_permille = 0;
  plan.nics[1].on_purpose = true;
  const PageCopy copy = PageCopyOf(plan);
  EXPECT_TRUE(copy.OnPurpose("node0", "nic1"));
  EXPECT_FALSE(copy.OnPurpose("node0", "nic0"));
  EXPECT_EQ(copy.Find(Fnv1a64("node0"), Fnv1a64("nic1"))->state, static_cast<uint8_t>(PlannedState::kFailed));
  EXPECT_FALSE(copy.PathBroken("node0", "nic1", "node1", "nic0"));

  plan = PlanOf(2, kPageEntriesMax);
  for (PlannedNic& nic : plan.nics) nic.on_purpose = true;
  std::string error;
  EXPECT_TRUE(PageWriter::Create(&error)->Publish(plan, 1, &error)) << error;
}

}  // namespace
}  // namespace r2cc::plan
