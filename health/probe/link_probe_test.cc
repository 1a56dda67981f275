#include "health/probe/link_probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/fake_executor.h"
#include "health/io/fake_link_watch.h"

namespace r2cc::health {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

class LinkProbeTest : public testing::Test {
 protected:
  // "r0 up", "r1 down: link down", in the order of arrival; then forgotten.
  std::vector<std::string> Reports() {
    std::vector<std::string> words;
    for (const Evidence& evidence : reports_) {
      EXPECT_EQ(evidence.observer, "n0");
      EXPECT_EQ(evidence.subject.node, "n0");
      EXPECT_LE(evidence.when, executor_.Now());
      if (evidence.kind == EvidenceKind::kLinkBounces)
        words.push_back(evidence.subject.nic + " bounces " + std::to_string(evidence.value));
      else
        words.push_back(evidence.subject.nic + (evidence.kind == EvidenceKind::kLinkUp ? " up" : " down: " + evidence.detail));
    }
    reports_.clear();
    return words;
  }

  FakeExecutor executor_;
  FakeLinkWatch watch_;
  std::vector<Evidence> reports_;
  std::vector<LinkFact> facts_;
  LinkProbe probe_{"n0",
                   {{.name = "r0", .interface = "eth0"}, {.name = "r1", .interface = "eth1"}, {.name = "a", .address = "127.0.0.2"}},
                   &watch_,
                   &executor_,
                   [this](const Evidence& evidence) { reports_.push_back(evidence); },
                   [this](const std::string&, const LinkFact& fact) { facts_.push_back(fact); }};
};

TEST_F(LinkProbeTest, SpeaksOfEveryNicAtTheStart) {
  watch_.Set("eth0", true, "02:00:00:00:00:01");
  watch_.Set("lo", true);
  ASSERT_TRUE(probe_.Start().ok());
  EXPECT_THAT(Reports(), UnorderedElementsAre("a up", "r0 up", "r1 down: no interface eth1"));
  ASSERT_EQ(facts_.size(), 1u);
  EXPECT_EQ(facts_[0].mac, "02:00:00:00:00:01");
}

TEST_F(LinkProbeTest, ReportsChangesOfItsOwnNicsAlone) {
  watch_.Set("eth0", true);
  watch_.Set("eth1", true);
  ASSERT_TRUE(probe_.Start().ok());
  Reports();
  executor_.Advance(kNanosPerSecond);
  watch_.Set("eth0", false);
  watch_.Set("docker0", false);
  watch_.Remove("eth1");
  EXPECT_THAT(Reports(), ElementsAre("r0 down: link down", "r1 down: interface eth1 is gone"));
  watch_.Set("eth0", true);
  executor_.Advance(kLinkUpSettle - 1);
  EXPECT_THAT(Reports(), IsEmpty()) << "up is reported when it has lasted";
  executor_.Advance(1);
  EXPECT_THAT(Reports(), ElementsAre("r0 up"));
  watch_.Set("eth0", false);
  EXPECT_THAT(Reports(), ElementsAre("r0 down: link down")) << "down at once";
}

// Thousands of events a second: one report that it is down, one when it stays up, and once a second how often it did not.
TEST_F(LinkProbeTest, AFlappingPortIsReportedOnce) {
  watch_.Set("eth0", true);
  watch_.Set("eth1", true);
  ASSERT_TRUE(probe_.Start().ok());
  Reports();
  for (int i = 0; i < 5000; ++i) {
    watch_.Set("eth0", i % 2 != 0);
    if (i % 100 == 0) executor_.Advance(kLinkUpSettle / 2);
  }
  EXPECT_THAT(Reports(), ElementsAre("r0 down: link down"));
  EXPECT_EQ(probe_.bounces(), 2499u);
  executor_.Advance(kLinkUpSettle);
  EXPECT_THAT(Reports(), ElementsAre("r0 up"));
  EXPECT_EQ(facts_.size(), 2u) << "of each interface one: nothing but the link changed";
  executor_.Advance(kBouncesInterval);
  EXPECT_THAT(Reports(), ElementsAre("r0 bounces 2499"));
  executor_.Advance(2 * kBouncesInterval);
  EXPECT_THAT(Reports(), IsEmpty());
}

TEST_F(LinkProbeTest, ALinkThatNeverLastsIsReportedEachSecond) {
  watch_.Set("eth0", false);
  watch_.Set("eth1", true);
  ASSERT_TRUE(probe_.Start().ok());
  Reports();
  for (Nanos end = executor_.Now() + 3 * kBouncesInterval; executor_.Now() < end; executor_.Advance(kNanosPerMs)) {
    watch_.Set("eth0", true);
    executor_.Advance(kNanosPerMs);
    watch_.Set("eth0", false);
  }
  executor_.Advance(kBouncesInterval);
  const auto reports = Reports();
  ASSERT_GE(reports.size(), 3u);
  EXPECT_LE(reports.size(), 4u);
  EXPECT_THAT(reports, testing::Each(testing::StartsWith("r0 bounces ")));
  EXPECT_EQ(probe_.bounces(), 1500u);
}

TEST_F(LinkProbeTest, ANewInterfaceOfTheNameIsAFact) {
  watch_.Set("eth0", true, "02:00:00:00:00:01");
  ASSERT_TRUE(probe_.Start().ok());
  facts_.clear();
  watch_.Set("eth0", false, "02:00:00:00:00:01");
  EXPECT_TRUE(facts_.empty());
  watch_.Set("eth0", true, "02:00:00:00:00:09");
  ASSERT_EQ(facts_.size(), 1u);
  EXPECT_EQ(facts_[0].mac, "02:00:00:00:00:09");
}

TEST_F(LinkProbeTest, AnInterfaceThatGoesAndComesIsAFactEachTime) {
  watch_.Set("eth0", true);
  ASSERT_TRUE(probe_.Start().ok());
  facts_.clear();
  watch_.Remove("eth0");
  ASSERT_EQ(facts_.size(), 1u);
  EXPECT_FALSE(facts_[0].present);
  watch_.Set("eth0", true);
  ASSERT_EQ(facts_.size(), 2u);
  EXPECT_TRUE(facts_[1].present);
}

TEST_F(LinkProbeTest, ACompleteListRepairsWhatWasLost) {
  watch_.Set("eth0", true);
  watch_.Set("eth1", true);
  ASSERT_TRUE(probe_.Start().ok());
  Reports();
  watch_.set_lossy(true);
  watch_.Set("eth0", false);
  watch_.Remove("eth1");
  EXPECT_TRUE(Reports().empty());
  probe_.Refresh();
  EXPECT_THAT(Reports(), UnorderedElementsAre("r0 down: link down", "r1 down: no interface eth1"));
}

TEST_F(LinkProbeTest, AnErrorOfTheKernelIsGivenOn) {
  watch_.set_start_status(absl::UnavailableError("no netlink"));
  EXPECT_EQ(probe_.Start(), absl::UnavailableError("no netlink"));
}

TEST_F(LinkProbeTest, NicsComeAndGo) {
  watch_.Set("eth0", true);
  watch_.Set("eth1", true);
  watch_.Set("eth2", true, "02:00:00:00:00:03");
  watch_.Set("eth3", true);
  watch_.Remove("eth3");
  ASSERT_TRUE(probe_.Start().ok());
  Reports();
  facts_.clear();
  probe_.Add({.name = "r2", .interface = "eth2"});
  probe_.Add({.name = "r3", .interface = "eth3"});
  probe_.Add({.name = "b", .address = "127.0.0.3"});
  probe_.Add({.name = "ib0", .port_guid = 7});
  EXPECT_THAT(Reports(), ElementsAre("r2 up", "r3 down: no interface eth3", "b up")) << "at once";
  ASSERT_EQ(facts_.size(), 1u);
  EXPECT_EQ(facts_[0].mac, "02:00:00:00:00:03");
  watch_.Set("eth2", false);
  EXPECT_THAT(Reports(), ElementsAre("r2 down: link down"));
  // It comes up, and is gone before that counts.
  watch_.Set("eth2", true);
  probe_.Remove("r2");
  executor_.Advance(kNanosPerSecond);
  watch_.Set("eth2", false);
  EXPECT_THAT(Reports(), IsEmpty());
  probe_.Add({.name = "r2", .interface = "eth2"});
  EXPECT_THAT(Reports(), ElementsAre("r2 down: link down"));
}

}  // namespace
}  // namespace r2cc::health
