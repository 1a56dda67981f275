#include "health/probe/sysfs_probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
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

std::vector<std::string> Words(const std::vector<Evidence>& all) {
  std::vector<std::string> words;
  for (const Evidence& evidence : all) words.push_back(Word(evidence));
  return words;
}

PortFacts Facts(uint64_t rate, uint64_t crc_errors, uint64_t flips) {
  PortFacts facts;
  facts.ifindex = 4;
  facts.rate_bits_per_s = rate;
  facts.carrier_changes = flips;
  facts.errors = {{"rx_crc_errors", crc_errors}, {"rx_errors", crc_errors}};
  return facts;
}

TEST(JudgePort, AQuietPortHasItsRateAndNoErrors) {
  EXPECT_THAT(Words(JudgePort("n0", "r0", Facts(100, 5, 2), Facts(100, 5, 2), kNanosPerSecond, 1)),
              ElementsAre("n0/r0 rate 100", "n0/r0 errors 0"));
}

TEST(JudgePort, ErrorsArePerSecondAndNameTheirCounter) {
  EXPECT_THAT(Words(JudgePort("n0", "r0", Facts(0, 5, 2), Facts(0, 105, 4), 2 * kNanosPerSecond, 1)),
              ElementsAre("n0/r0 errors 50 rx_crc_errors", "n0/r0 carrier-flips 2"));
}

TEST(JudgePort, ACounterThatWentBackCountsFromZero) {
  EXPECT_THAT(Words(JudgePort("n0", "r0", Facts(0, 1'000'000, 9), Facts(0, 20, 9), kNanosPerSecond, 1)),
              ElementsAre("n0/r0 errors 20 rx_crc_errors"));
}

TEST(JudgePort, TheFirstSampleHasNoPast) {
  EXPECT_THAT(Words(JudgePort("n0", "r0", Facts(100, 5, 2), Facts(100, 5, 2), 0, 1)), ElementsAre("n0/r0 rate 100"));
  EXPECT_THAT(Words(JudgePort("n0", "r0", PortFacts(), Facts(0, 5, 2), kNanosPerSecond, 1)), ElementsAre("n0/r0 errors 0"));
  EXPECT_THAT(Words(JudgePort("n0", "r0", PortFacts(), PortFacts(), kNanosPerSecond, 1)), IsEmpty());
}

TEST(JudgePort, AbsurdNumbersStayInRange) {
  for (const Evidence& evidence : JudgePort("n0", "r0", Facts(0, 0, 0), Facts(UINT64_MAX, UINT64_MAX, UINT64_MAX), 1, 1))
    EXPECT_GE(evidence.value, 0) << Word(evidence);
}

class SysfsProbeTest : public testing::Test {
 protected:
  SysfsProbeTest() {
    sysfs_.Set("class/net/eth0/ifindex", "4");
    sysfs_.Set("class/net/eth0/speed", "1000");
    sysfs_.Set("class/net/eth0/statistics/rx_errors", "10");
  }
  std::vector<std::string> Heard() {
    const std::vector<std::string> words = Words(heard_);
    heard_.clear();
    return words;
  }

  FakeExecutor executor_;
  FakeSysfs sysfs_;
  std::vector<Evidence> heard_;
  std::vector<std::string> sampled_;
  SysfsProbe probe_{"n0",
                    {{.name = "r0", .interface = "eth0"}, {.name = "a", .address = "127.0.0.2"}},
                    &sysfs_,
                    &executor_,
                    [this](const Evidence& evidence) { heard_.push_back(evidence); },
                    [this](const std::string& nic, const PortFacts&) { sampled_.push_back(nic); }};
};

TEST_F(SysfsProbeTest, SamplesOncePerInterval) {
  probe_.Start();
  EXPECT_THAT(Heard(), ElementsAre("n0/r0 rate 1000000000"));
  EXPECT_THAT(sampled_, ElementsAre("r0"));
  sysfs_.Set("class/net/eth0/statistics/rx_errors", "40");
  executor_.Advance(kSysfsProbeInterval - 1);
  EXPECT_THAT(Heard(), IsEmpty());
  executor_.Advance(1);
  EXPECT_THAT(Heard(), ElementsAre("n0/r0 rate 1000000000", "n0/r0 errors 30 rx_errors"));
}

// /sys shows an interface of that name, but of another network namespace.
TEST_F(SysfsProbeTest, AnotherInterfaceOfThatNameIsNotUsed) {
  probe_.SetIfindex("r0", 77);
  probe_.SetIfindex("unknown", 1);
  probe_.Start();
  executor_.Advance(3 * kSysfsProbeInterval);
  EXPECT_THAT(Heard(), IsEmpty());
  EXPECT_THAT(sampled_, IsEmpty());
}

TEST_F(SysfsProbeTest, AReplacedInterfaceStartsAnew) {
  probe_.Start();
  sysfs_.Set("class/net/eth0/ifindex", "5");
  sysfs_.Set("class/net/eth0/statistics/rx_errors", "5000");
  Heard();
  executor_.Advance(kSysfsProbeInterval);
  EXPECT_THAT(Heard(), ElementsAre("n0/r0 rate 1000000000"));
  executor_.Advance(kSysfsProbeInterval);
  EXPECT_THAT(Heard(), ElementsAre("n0/r0 rate 1000000000", "n0/r0 errors 0"));
}

TEST_F(SysfsProbeTest, AnInterfaceThatIsNotThereIsPassedOver) {
  sysfs_.Remove("class/net/eth0/ifindex");
  probe_.Start();
  executor_.Advance(kSysfsProbeInterval);
  EXPECT_THAT(Heard(), IsEmpty());
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

}  // namespace
}  // namespace r2cc::health
