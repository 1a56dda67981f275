// The share of one user, or one container, in the registry.
#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>

#include "daemon/jobs/job_registry.h"

namespace r2cc::daemon {
namespace {

plan::AttachRequest OneRail() {
  plan::AttachRequest request{};
  request.rail_count = 1;
  return request;
}

plan::EvidenceRecord FlowTo(const std::string& node) {
  plan::EvidenceRecord record{};
  record.kind = static_cast<uint32_t>(plan::EvidenceRecordKind::kFlowOpened);
  std::strcpy(record.peer_node, node.c_str());
  return record;
}

TEST(JobSharesTest, OneUsersJobsNameABoundedNumberOfNodes) {
  JobRegistry registry;
  for (JobId id = 1; id <= 3; ++id) registry.Add(id, {static_cast<int32_t>(id), 1000}, OneRail(), {}, 0);
  registry.Add(4, {4, 1001}, OneRail(), {}, 0);
  for (int i = 0; i < 4096; ++i) registry.Record(1, FlowTo("n" + std::to_string(i)));
  registry.Record(2, FlowTo("n0"));
  registry.Record(2, FlowTo("new"));
  registry.Record(4, FlowTo("new"));
  EXPECT_EQ(registry.peers().at("uid 1000").size(), JobRegistry::kPeersPerUserMax);
  EXPECT_EQ(registry.Find(2)->peer_nodes_size(), 1) << "a node that the user has named already is none more";
  EXPECT_EQ(registry.peers().at("uid 1001"), std::set<std::string>{"new"}) << "another user's jobs";
  EXPECT_TRUE(registry.Remove(1, 9));
  EXPECT_EQ(registry.peers().at("uid 1000"), std::set<std::string>{"n0"});
  EXPECT_TRUE(registry.Remove(2, 9));
  EXPECT_FALSE(registry.peers().contains("uid 1000"));
}

// The root of a container gives each process another uid.
TEST(JobSharesTest, AContainerHasTheShareOfOneUser) {
  JobRegistry registry;
  registry.Add(1, {1, 1000}, OneRail(), {}, 0);
  registry.Remove(1, 9);
  for (JobId id = 2; id < 2 + JobRegistry::kEndedMax; ++id) {
    registry.Add(id, {static_cast<int32_t>(id), static_cast<uint32_t>(5000 + id), false, "container 7"}, OneRail(), {}, 0);
    registry.Record(id, FlowTo("n" + std::to_string(id)));
    EXPECT_EQ(registry.peers().size(), 1u);
    registry.Remove(id, 9);
  }
  ASSERT_EQ(registry.all_ended().size(), 1 + JobRegistry::kEndedPerUserMax);
  EXPECT_EQ(registry.all_ended().front().uid(), 1000u) << "another user's job is not displaced";
}

// It may take any uid and any number, but not the history of a process on the machine itself.
TEST(JobSharesTest, AContainerTakesOverNoOthersHistory) {
  JobRegistry registry;
  plan::AttachRequest request = OneRail();
  request.process_id = 77;
  registry.Add(1, {1, 1000}, request, {}, 5);
  registry.Remove(1, 9);
  registry.Add(2, {1, 1000, true, "container 7"}, request, {}, 10);
  EXPECT_EQ(registry.all_ended().size(), 1u);
  EXPECT_EQ(registry.Find(2)->attached_ns(), 10);
  registry.Add(3, {1, 1000}, request, {}, 11);
  EXPECT_EQ(registry.Find(3)->attached_ns(), 5) << "its own is";
}

// 64 processes that each name 1,024 nodes would be 13 MB of one user, and 4,096 of many users more than the daemon may have.
TEST(JobSharesTest, NamesThatProcessesKeepAreBounded) {
  JobRegistry registry;
  size_t kept = 0;
  const auto fill = [&](uint32_t uid, JobId first) {
    kept = 0;
    for (JobId id = first; id < first + 16; ++id) {
      registry.Add(id, {static_cast<int32_t>(id), uid}, OneRail(), {}, 0);
      for (size_t i = 0; i < JobRegistry::kPeersPerUserMax; ++i) registry.Record(id, FlowTo("n" + std::to_string(i)));
      kept += static_cast<size_t>(registry.Find(id)->peer_nodes_size());
    }
    return kept;
  };
  EXPECT_EQ(fill(1000, 1), JobRegistry::kPeerNamesPerUserMax);
  EXPECT_EQ(registry.peers().at("uid 1000").size(), JobRegistry::kPeersPerUserMax) << "the daemon knows them all the same";
  for (JobId id = 1; id <= 16; ++id) registry.Remove(id, 9);
  size_t in_all = 0;
  for (uint32_t uid = 0; uid < 20; ++uid) in_all += fill(2000 + uid, 100 + 16 * uid);
  EXPECT_EQ(in_all, JobRegistry::kPeerNamesMax);
}

}  // namespace
}  // namespace r2cc::daemon
