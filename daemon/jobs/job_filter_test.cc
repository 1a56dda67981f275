#include "daemon/jobs/job_filter.h"

#include <gtest/gtest.h>

namespace r2cc::daemon {
namespace {

v1::Job Train() {
  v1::Job job;
  job.set_job("train-7");
  job.set_uid(1000);
  job.add_rails()->set_nic("rail0");
  job.add_rails()->set_nic("rail1");
  job.add_peer_nodes("rack3-n1");
  return job;
}

v1::ListJobsRequest Ask(void (*fill)(v1::ListJobsRequest*)) {
  v1::ListJobsRequest request;
  fill(&request);
  return request;
}

TEST(JobFilterTest, NamesWhatFits) {
  const v1::Job job = Train();
  EXPECT_TRUE(Wanted({}, job));
  EXPECT_TRUE(Wanted(Ask([](auto* ask) { ask->set_job_glob("train-*"); }), job));
  EXPECT_FALSE(Wanted(Ask([](auto* ask) { ask->set_job_glob("train"); }), job));
  EXPECT_FALSE(Wanted(Ask([](auto* ask) { ask->set_job_glob(std::string(kJobGlobBytesMax + 1, '*')); }), job));
  EXPECT_TRUE(Wanted(Ask([](auto* ask) { ask->set_uid(1000); }), job));
  EXPECT_FALSE(Wanted(Ask([](auto* ask) { ask->set_uid(0); }), job)) << "root is a user, too";
  EXPECT_TRUE(Wanted(Ask([](auto* ask) { ask->set_nic("rail1"); }), job));
  EXPECT_FALSE(Wanted(Ask([](auto* ask) { ask->set_nic("rail2"); }), job));
  EXPECT_TRUE(Wanted(Ask([](auto* ask) { ask->set_node_glob("rack3-*"); }), job));
  EXPECT_FALSE(Wanted(Ask([](auto* ask) { ask->set_node_glob("rack4-*"); }), job));
  EXPECT_FALSE(Wanted(Ask([](auto* ask) { ask->set_job_glob("train-*"), ask->set_nic("rail2"); }), job)) << "all of them";
}

TEST(JobFilterTest, BadIsWhatAnOperatorShouldLookAt) {
  EXPECT_FALSE(IsBad(Train()));
  v1::Job job = Train();
  job.set_evidence_dropped(1);
  EXPECT_TRUE(IsBad(job));
  job = Train();
  job.mutable_rails(1)->set_failovers(1);
  EXPECT_TRUE(IsBad(job));
  job = Train();
  job.mutable_rails(1)->clear_nic();
  EXPECT_TRUE(IsBad(job));
  job = Train();
  job.add_gave_up();
  EXPECT_TRUE(IsBad(job));
  v1::ListJobsRequest bad;
  bad.set_bad(true);
  EXPECT_TRUE(Wanted(bad, job));
  EXPECT_FALSE(Wanted(bad, Train()));
}

}  // namespace
}  // namespace r2cc::daemon
