#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "daemon/metrics/table.h"

namespace r2cc::daemon {
namespace {

TEST(MetricsReferenceTest, TheCommittedPageIsMadeOfTheTable) {
  std::ifstream file("docs/reference/metrics.md");
  std::ostringstream committed;
  committed << file.rdbuf();
  EXPECT_EQ(committed.str(), MetricsReference()) << "./bazelw run //daemon/metrics:reference > docs/reference/metrics.md";
}

}  // namespace
}  // namespace r2cc::daemon
