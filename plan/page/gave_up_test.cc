#include "plan/page/gave_up.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <time.h>

namespace r2cc::plan {
namespace {

GaveUpRail Rail(const std::string& name, EvidenceCause cause, DeadPort dead_port = DeadPort::kNone) {
  return {name, name, name, cause, "03:12:04", dead_port};
}

TEST(GaveUp, NamesRailsCauseAndNextCommand) {
  GaveUp gave_up{"train", 4711, "n3", "n1", 30'000'000'000, {}};
  gave_up.rails = {Rail("rail0", EvidenceCause::kSilence, DeadPort::kPeer), Rail("rail1", EvidenceCause::kLinkDown),
                   Rail("rail2", EvidenceCause::kLinkDown), Rail("rail3", EvidenceCause::kLinkDown)};
  EXPECT_EQ(
      GaveUpText(gave_up),
      "job train (pid 4711) on n3 gave up on n1 after 30.0 s: rail0 port of n1 silent since 03:12:04, rail1..3 link down; r2ccctl nic why "
      "n1/rail0");
  gave_up.rails = {Rail("rail0", EvidenceCause::kLinkDown), Rail("rail2", EvidenceCause::kLinkDown)};
  EXPECT_EQ(GaveUpText(gave_up),
            "job train (pid 4711) on n3 gave up on n1 after 30.0 s: rail0 link down, rail2 link down; r2ccctl nic why n3/rail0");
  gave_up.rails = {Rail("ib", EvidenceCause::kSocketError), Rail("rail9999999999", EvidenceCause::kNone),
                   Rail("rail10000000000", EvidenceCause::kNone)};
  EXPECT_EQ(
      GaveUpText(gave_up),
      "job train (pid 4711) on n3 gave up on n1 after 30.0 s: ib broken since 03:12:04, rail9999999999 never up, rail10000000000 never "
      "up; r2ccctl nic why n1/ib");
  gave_up.rails.clear();
  EXPECT_EQ(GaveUpText(gave_up), "job train (pid 4711) on n3 gave up on n1 after 30.0 s: no rail reached it; r2ccctl path probe n3 n1");
}

TEST(GaveUp, TimesAreOfThisMachinesZone) {
  setenv("TZ", "UTC-2", 1);
  tzset();
  EXPECT_EQ(TimeOfDay(int64_t{4} * 1'000'000'000), "02:00:04");
}

}  // namespace
}  // namespace r2cc::plan
