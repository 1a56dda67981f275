#include "daemon/services/release_counts.h"

#include <gtest/gtest.h>

namespace r2cc::daemon {
namespace {

TEST(ReleaseCounts, TheMostFrequentComesFirstAndOnlyOwnReportsCount) {
  ReleaseCounts counts;
  counts.Add("n0", "0.2.0", 0);
  counts.Add("n1", "0.1.0", 0);
  counts.Add("n2", "0.2.0", 3);
  counts.Add("n3", "", 0);
  v1::ClusterSummary summary;
  counts.PutInto(&summary);
  ASSERT_EQ(summary.releases_size(), 2);
  EXPECT_EQ(summary.releases(0).release(), "0.2.0");
  EXPECT_EQ(summary.releases(0).nodes(), 2u);
  EXPECT_EQ(summary.releases(1).release(), "0.1.0");
  EXPECT_EQ(summary.releases(1).node(), "n1");
  EXPECT_EQ(summary.jobs_of_other_releases(), 3u);
  EXPECT_EQ(summary.jobs_of_other_releases_on(), "n2");
}

TEST(ReleaseCounts, InventedNodesAreBounded) {
  ReleaseCounts counts;
  for (int i = 0; i < 100; ++i) counts.Add("n" + std::to_string(i), std::to_string(i), UINT32_MAX / 2);
  counts.Add("n100", "0.2.0", 0);
  counts.Add("n101", "0.2.0", 0);
  v1::ClusterSummary summary;
  counts.PutInto(&summary);
  EXPECT_EQ(summary.releases_size(), static_cast<int>(ReleaseCounts::kReleasesMax));
  EXPECT_EQ(summary.releases(0).release(), "0.2.0");
  EXPECT_EQ(summary.jobs_of_other_releases(), UINT32_MAX);
}

}  // namespace
}  // namespace r2cc::daemon
