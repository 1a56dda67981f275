#include "health/probe/sysfs_probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "base/fake_executor.h"
#include "health/io/fake_sysfs.h"

namespace r2cc::health {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::string Word(const Evidence& evidence) {
  return evidence.subject.ToString() + " " + EvidenceKindName(evidence.kind) + " " + std::to_string(evidence.value) +
         (evidence.detail.empty() ? "" : " " + evidence.detail);
}

std::vector<std::string> TextsOf(const std::vector<Evidence>& all) {
  std::vector<std::string> texts;
  for (const Evidence& evidence : all) texts.push_back(Word(evidence));
  return texts;
}

SysfsPortFacts Facts(uint64_t rate, uint64_t crc_errors, uint64_t flips) {
  SysfsPortFacts facts;
  facts.ifindex = 4;
  facts.rate_bits_per_s = rate;
  facts.carrier_changes = flips;
  facts.errors = {{"rx_crc_errors", crc_errors}, {"rx_errors", crc_errors}};
  return facts;
}

class PortJudgeTest : public testing::Test {
 protected:
  std::vector<std::string> Judge(const SysfsPortFacts& facts) { return TextsOf(judge_.Judge(facts, now_ += kNanosPerSecond)); }
  PortJudge judge_{"n0", "r0", /*speaks_of_link=*/false};
  Nanos now_ = kNanosPerSecond;
};

TEST_F(PortJudgeTest, AQuietPortHasItsRateAndNoErrors) {
  EXPECT_THAT(Judge(Facts(100, 5, 2)), ElementsAre("n0/r0 rate 100")) << "the first sample has no past";
  EXPECT_THAT(Judge(Facts(100, 5, 2)), ElementsAre("n0/r0 rate 100", "n0/r0 errors 0"));
}

TEST_F(PortJudgeTest, ErrorsAreMeasuredByTheirLimit) {
  Judge(Facts(0, 5, 2));
  EXPECT_THAT(Judge(Facts(0, 55, 4)), ElementsAre("n0/r0 errors 5000 50 rx_crc_errors in 1 s, the limit is 10", "n0/r0 carrier-flips 2"));
}

TEST_F(PortJudgeTest, AnotherInterfaceHasNoPast) {
  Judge(Facts(0, 5, 2));
  SysfsPortFacts other = Facts(100, 5000, 7);
  other.ifindex = 5;
  EXPECT_THAT(Judge(other), ElementsAre("n0/r0 rate 100"));
  judge_.Forget();
  EXPECT_THAT(Judge(other), ElementsAre("n0/r0 rate 100"));
}

TEST_F(PortJudgeTest, APortWithoutCountersReportsNothing) {
  Judge(SysfsPortFacts());
  EXPECT_THAT(Judge(SysfsPortFacts()), IsEmpty());
  EXPECT_THAT(judge_.Gone("gone", 1), IsEmpty()) << "the link probe speaks of the link";
}

TEST_F(PortJudgeTest, AbsurdNumbersStayInRange) {
  judge_.Judge(Facts(0, 0, 0), 0);
  for (const Evidence& evidence : judge_.Judge(Facts(UINT64_MAX, UINT64_MAX, UINT64_MAX), 1))
    EXPECT_GE(evidence.value, 0) << Word(evidence);
}

class SysfsProbeTest : public testing::Test {
 protected:
  SysfsProbeTest() {
    sysfs_.Set("class/net/eth0/ifindex", "4");
    sysfs_.Set("class/net/eth0/speed", "1000");
    sysfs_.Set("class/net/eth0/statistics/rx_errors", "10");
  }
  std::vector<std::string> Reports() {
    const std::vector<std::string> texts = TextsOf(reports_);
    reports_.clear();
    return texts;
  }

  FakeExecutor executor_;
  FakeSysfs sysfs_;
  std::vector<Evidence> reports_;
  std::vector<std::string> sampled_;
  SysfsProbe probe_{"n0",
                    {{.name = "r0", .interface = "eth0"}, {.name = "a", .address = "127.0.0.2"}},
                    &sysfs_,
                    &executor_,
                    [this](const Evidence& evidence) { reports_.push_back(evidence); },
                    [this](const std::string& nic, const SysfsPortFacts&) { sampled_.push_back(nic); }};
};

TEST_F(SysfsProbeTest, SamplesOncePerInterval) {
  probe_.Start();
  EXPECT_THAT(Reports(), ElementsAre("n0/r0 rate 1000000000"));
  EXPECT_THAT(sampled_, ElementsAre("r0"));
  sysfs_.Set("class/net/eth0/statistics/rx_errors", "40");
  executor_.Advance(kSysfsProbeInterval - 1);
  EXPECT_THAT(Reports(), IsEmpty());
  executor_.Advance(1);
  EXPECT_THAT(Reports(), ElementsAre("n0/r0 rate 1000000000", "n0/r0 errors 3000 30 rx_errors in 1 s, the limit is 10"));
}

TEST_F(SysfsProbeTest, FilesAreOpenedAgainOnlyWhenTheirNamesMayMeanAnotherDevice) {
  probe_.Start();
  EXPECT_EQ(sysfs_.opened(), 3);
  executor_.Advance(3 * kSysfsProbeInterval);
  EXPECT_EQ(sysfs_.opened(), 3);
  probe_.SetIfindex("r0", 4);
  executor_.Advance(3 * kSysfsProbeInterval);
  EXPECT_EQ(sysfs_.opened(), 6);
}

// /sys shows an interface of that name, but of another network namespace.
TEST_F(SysfsProbeTest, AnotherInterfaceOfThatNameIsNotUsed) {
  probe_.SetIfindex("r0", 77);
  probe_.SetIfindex("unknown", 1);
  probe_.Start();
  executor_.Advance(3 * kSysfsProbeInterval);
  EXPECT_THAT(Reports(), IsEmpty());
  EXPECT_THAT(sampled_, IsEmpty());
}

TEST_F(SysfsProbeTest, AReplacedInterfaceStartsAgain) {
  probe_.Start();
  sysfs_.Set("class/net/eth0/ifindex", "5");
  sysfs_.Set("class/net/eth0/statistics/rx_errors", "5000");
  Reports();
  executor_.Advance(kSysfsProbeInterval);
  EXPECT_THAT(Reports(), ElementsAre("n0/r0 rate 1000000000"));
  executor_.Advance(kSysfsProbeInterval);
  EXPECT_THAT(Reports(), ElementsAre("n0/r0 rate 1000000000", "n0/r0 errors 0"));
}

TEST_F(SysfsProbeTest, AnInterfaceThatIsNotThereIsPassedOver) {
  sysfs_.Remove("class/net/eth0/ifindex");
  probe_.Start();
  executor_.Advance(kSysfsProbeInterval);
  EXPECT_THAT(Reports(), IsEmpty());
}

// An InfiniBand NIC of a DGX that has no interface: /sys alone speaks of its link.
TEST(SysfsProbe, AnInfinibandPortIsKnownByItsGuid) {
  FakeExecutor executor;
  FakeSysfs dgx = FakeSysfs::Load("health/io/testdata/dgx.sysfs");
  std::vector<Evidence> reports;
  SysfsProbe probe(
      "n0", {{.name = "ib0", .port_guid = 0xa088c20300181000}}, &dgx, &executor, [&](const Evidence& one) { reports.push_back(one); },
      nullptr);
  const auto received_texts = [&] { return TextsOf(std::exchange(reports, {})); };
  probe.Start();
  EXPECT_THAT(received_texts(), ElementsAre("n0/ib0 link-up 0", "n0/ib0 rate 400000000000"));
  dgx.Set("class/infiniband/mlx5_0/ports/1/state", "1: DOWN");
  executor.Advance(kSysfsProbeInterval);
  EXPECT_THAT(received_texts(), ElementsAre("n0/ib0 link-down 0 InfiniBand port is DOWN", "n0/ib0 errors 0"));
  dgx.Remove("class/infiniband/mlx5_0/ports/1/gids/0");
  executor.Advance(kSysfsProbeInterval);
  EXPECT_THAT(received_texts(), ElementsAre("n0/ib0 link-down 1 /sys shows no InfiniBand port with GUID 0xa088c20300181000"));
}

TEST(SysfsProbe, NothingIsSampledAfterItsEnd) {
  FakeExecutor executor;
  FakeSysfs sysfs;
  {
    SysfsProbe probe(
        "n0", {{.name = "r0", .interface = "eth0"}}, &sysfs, &executor, [](const Evidence&) {}, nullptr);
    probe.Start();
    EXPECT_TRUE(executor.NextDue().has_value());
  }
  EXPECT_FALSE(executor.NextDue().has_value());
}

TEST_F(SysfsProbeTest, NicsComeAndGo) {
  sysfs_.Set("class/net/eth1/ifindex", "5");
  sysfs_.Set("class/net/eth1/speed", "2000");
  probe_.Add({.name = "r1", .interface = "eth1"});
  EXPECT_THAT(Reports(), IsEmpty()) << "nothing is sampled yet";
  probe_.Remove("r1");
  probe_.Start();
  Reports();
  probe_.Add({.name = "r1", .interface = "eth1"});
  probe_.Add({.name = "b", .address = "127.0.0.3"});
  EXPECT_THAT(Reports(), ElementsAre("n0/r1 rate 2000000000"));
  executor_.Advance(kSysfsProbeInterval);
  EXPECT_THAT(Reports(), ElementsAre("n0/r0 rate 1000000000", "n0/r0 errors 0", "n0/r1 rate 2000000000"));
  probe_.Remove("r0");
  executor_.Advance(kSysfsProbeInterval);
  EXPECT_THAT(Reports(), ElementsAre("n0/r1 rate 2000000000"));
}

}  // namespace
}  // namespace r2cc::health
