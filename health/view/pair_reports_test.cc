#include "health/view/pair_reports.h"

#include <gtest/gtest.h>

#include <vector>

namespace r2cc::health {
namespace {

TEST(PairReports, GivesBackWhatWasPutIn) {
  const std::vector<PairReport> reports = {{"rail0", {"n1", "rail0"}},
                                           {"", {"", ""}, true},
                                           {std::string(255, 'a'), {std::string(63, 'b'), "mlx5_0:1"}, true, true},
                                           {std::string(1, '\0'), {"n1", "\xff"}, false, true},
                                           {"rail1", {"n1", "rail1"}, false, true, PairVerdict::kSilent},
                                           {"rail2", {"n1", "rail2"}, false, false, PairVerdict::kAnswering}};
  PairReports packed;
  EXPECT_TRUE(packed.empty());
  EXPECT_EQ(packed.begin(), packed.end());
  for (const PairReport& report : reports) packed.push_back(report);
  packed.ShrinkToFit();
  EXPECT_EQ(std::vector<PairReport>(packed.begin(), packed.end()), reports);
  auto at = packed.begin();
  for (const PairReport& report : reports) {
    EXPECT_EQ(at.silent(), report.silent);
    EXPECT_EQ(at.large_lost(), report.large == PairVerdict::kSilent);
    EXPECT_EQ(at.peer_node(), report.peer.node);
    ++at;
  }
  EXPECT_EQ(packed.size(), 6u);
  EXPECT_EQ(packed.silent(), 2u);
  EXPECT_EQ(packed.broken(), 3u);
  EXPECT_EQ(packed.large_lost(), 1u);
}

TEST(PairReports, IsAValue) {
  const PairReports one = {{"rail0", {"n1", "rail0"}}, {"rail1", {"n1", "rail1"}, true}};
  PairReports other = one;
  EXPECT_EQ(one, other);
  other.push_back({"rail2", {"n1", "rail2"}});
  EXPECT_NE(one, other);
  // The same bytes, cut elsewhere.
  EXPECT_NE(PairReports({{"ab", {"c", ""}}}), PairReports({{"a", {"bc", ""}}}));
  EXPECT_NE(PairReports({{"a", {"b", "c"}, true}}), PairReports({{"a", {"b", "c"}, false}}));
}

TEST(PairReportsDeathTest, ANameThatIsTooLongIsAMistake) {
  EXPECT_DEATH(PairReports({{std::string(256, 'a'), {"n1", "rail0"}}}), "UINT8_MAX");
}

}  // namespace
}  // namespace r2cc::health
