#include "client/core/texts.h"

#include <gtest/gtest.h>

namespace r2cc::client {
namespace {

TEST(CauseText, ItsName) {
  EXPECT_EQ(CauseText("link-down"), "its link is down");
  EXPECT_EQ(CauseText("page-notice"), "r2ccd took it out of use");
  EXPECT_EQ(CauseText("what a later release knows"), "what a later release knows");
}

TEST(EvidenceValueText, HasItsUnit) {
  EXPECT_EQ(EvidenceValueText("drill-fail", 600'000'000'000), "for 10 min 0 s");
  EXPECT_EQ(EvidenceValueText("rate", 25'000'000'000), "25 Gbit/s");
  EXPECT_EQ(EvidenceValueText("job-slow", 250), "25%");
  EXPECT_EQ(EvidenceValueText("weight", 0), "0%");
  EXPECT_EQ(EvidenceValueText("rail-silent", 0), "");
  // Without a value, and with the number of looks next to it, it read as a number of errors.
  EXPECT_EQ(EvidenceValueText("errors", 0), "0% of the limit");
  EXPECT_EQ(EvidenceValueText("errors", 1500), "150% of the limit");
  EXPECT_EQ(EvidenceValueText("carrier-flips", 3), "3");
  EXPECT_EQ(EvidenceValueText("rate", -1), "-1");
}

TEST(MeaningForJobs, EachStateAndWeight) {
  const auto meaning = [](v1::NicState state, uint32_t permille) {
    v1::PlannedNic planned;
    planned.set_state(state);
    planned.set_weight_permille(permille);
    return MeaningForJobs(planned);
  };
  EXPECT_EQ(meaning(v1::HEALTHY, 1000), "use it fully");
  EXPECT_EQ(meaning(v1::DEGRADED, 250), "send 25% of a full NIC's share over it");
  EXPECT_EQ(meaning(v1::SUSPECT, 1000), "go on over it, and leave it as soon as it loses data");
  EXPECT_EQ(meaning(v1::FAILED, 0), "send nothing over it; their data goes over the node's other NICs");
  EXPECT_EQ(meaning(v1::PROVING, 0), "send nothing over it yet: it has to work for a while first");
  EXPECT_EQ(meaning(v1::DRAINED, 0), "begin nothing new over it; what is in flight ends");
  EXPECT_EQ(meaning(v1::HEALTHY, 0), "send nothing over it, as its weight is 0");
}

}  // namespace
}  // namespace r2cc::client
