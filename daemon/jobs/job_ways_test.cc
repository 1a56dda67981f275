#include "daemon/jobs/job_ways.h"

#include <gtest/gtest.h>

#include <string>

#include "daemon/jobs/kept_job.h"

namespace r2cc::daemon {
namespace {

TEST(JobWays, TheLastOneOfEachCommunicatorIsKept) {
  v1::Job job;
  const auto put = [&](uint32_t communicator, uint32_t way, uint64_t call, int64_t time_ns) {
    plan::EvidenceRecord record{};
    record.kind = static_cast<uint32_t>(plan::EvidenceRecordKind::kWay);
    record.incarnation = communicator;
    record.bytes = call;
    record.duration_ns = 16 << 20;
    record.replayed_bytes = plan::WayDetail(way, 660);
    NoteWay(record, time_ns, &job);
  };
  put(3, 1, 51200, 10);
  put(5, 2, 512, 11);
  put(3, 0, 60000, 20);
  put(5, 3, 9, 21);  // of a later release
  ASSERT_EQ(job.ways_size(), 2);
  EXPECT_EQ(job.ways(0).communicator(), 3u);
  EXPECT_EQ(job.ways(0).way(), "nccl");
  EXPECT_EQ(job.ways(0).call(), 60000u);
  EXPECT_EQ(job.ways(0).since_ns(), 20);
  EXPECT_EQ(job.ways(0).changes(), 2u);
  EXPECT_EQ(job.ways(1).way(), "collnet");
  EXPECT_EQ(job.ways(1).bytes_min(), uint64_t{16} << 20);
  EXPECT_EQ(job.ways(1).expected_permille(), 660u);
  EXPECT_EQ(job.ways(1).changes(), 1u);
  for (uint32_t communicator = 10; communicator < 200; ++communicator) put(communicator, 1, 1, 30);
  EXPECT_EQ(job.ways_size(), kJobWaysMax);
}

TEST(JobWays, TheContentOfAFileIsBoundedAndClean) {
  v1::Job job;
  for (int i = 0; i < 2 * kJobWaysMax; ++i) {
    v1::AllReduceWay& way = *job.add_ways();
    way.set_way("tree\x1b[31m" + std::string(5000, 'x'));
    way.set_node("n7");
  }
  const v1::Job kept = Cleaned(job);
  ASSERT_EQ(kept.ways_size(), kJobWaysMax);
  EXPECT_EQ(kept.ways(0).way().substr(0, 6), "tree?[");
  EXPECT_LE(kept.ways(0).way().size(), 1024u);
  EXPECT_EQ(kept.ways(0).node(), "") << "it is this node's";
}

}  // namespace
}  // namespace r2cc::daemon
