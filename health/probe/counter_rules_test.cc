#include "health/probe/counter_rules.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "health/io/fake_sysfs.h"
#include "health/io/sysfs_port_facts.h"

namespace r2cc::health {
namespace {

constexpr Nanos kSecond = kNanosPerSecond;

class CounterRulesTest : public testing::Test {
 protected:
  // One second later the counter has grown by so much.
  CounterWatch::Verdict Grow(const std::string& counter, uint64_t growth, uint64_t packets = 0) {
    count_ += growth;
    packets_ += packets;
    return watch_.Sample({{counter, count_}}, packets_, now_ += kSecond);
  }

  CounterWatch watch_;
  uint64_t count_ = 1000;
  uint64_t packets_ = 0;
  Nanos now_ = kSecond;
};

TEST_F(CounterRulesTest, BelowItsLimitForEverIsFine) {
  Grow("rx_crc_errors", 0);
  for (int i = 0; i < 100; ++i) EXPECT_LT(Grow("rx_crc_errors", 9).permille, 1000u) << i;
}

TEST_F(CounterRulesTest, AtItsLimitIsBrokenAndNamesCounterAndValue) {
  Grow("rx_crc_errors", 0);
  const auto verdict = Grow("rx_crc_errors", 57);
  EXPECT_EQ(verdict.permille, 5700u);
  EXPECT_EQ(verdict.text, "57 rx_crc_errors in 1 s, the limit is 10");
  EXPECT_EQ(Grow("rx_crc_errors", 0).text, "") << "nothing grew: nothing to report";
}

TEST_F(CounterRulesTest, TheFirstSampleHasNoPast) {
  EXPECT_EQ(Grow("symbol_error", 1'000'000).permille, 0u);
  watch_.Reset();
  EXPECT_EQ(Grow("symbol_error", 1'000'000).permille, 0u);
}

// One re-training of a link is an event; the third within a minute is a fault.
TEST_F(CounterRulesTest, RareEventsAddUpOverTheirWindow) {
  for (const char* counter : {"link_downed", "link_error_recovery", "local_link_integrity_errors"}) {
    watch_.Reset();
    Grow(counter, 0);
    EXPECT_LT(Grow(counter, 1).permille, 1000u) << counter;
    EXPECT_LT(Grow(counter, 1).permille, 1000u) << counter;
    EXPECT_LT(Grow(counter, 1).permille, 1000u) << "two seconds have drained a tenth";
    EXPECT_GE(Grow(counter, 1).permille, 1000u) << counter;
  }
}

TEST_F(CounterRulesTest, OnePerMinuteIsNoFault) {
  Grow("link_downed", 0);
  for (int minute = 0; minute < 60; ++minute) {
    EXPECT_LT(Grow("link_downed", 1).permille, 1000u);
    for (int second = 1; second < 60; ++second) Grow("link_downed", 0);
  }
}

TEST_F(CounterRulesTest, AStormIsForgottenWithinTwoWindows) {
  Grow("rx_errors", 0);
  Grow("rx_errors", 1'000'000'000);
  Grow("rx_errors", 0);
  Grow("rx_errors", 0);
  EXPECT_LT(Grow("rx_errors", 9).permille, 1000u);
}

// 200 retransmissions a second: a fault of a port that hardly moves anything, congestion's crumbs of one that moves millions.
TEST_F(CounterRulesTest, RetransmissionsAreSetAgainstTheLoad) {
  Grow("packet_seq_err", 0);
  EXPECT_LT(Grow("packet_seq_err", 200, 40'000'000).permille, 1000u);
  EXPECT_LT(Grow("packet_seq_err", 50, 1000).permille, 1000u) << "few, with any share";
  EXPECT_GE(Grow("packet_seq_err", 200, 100'000).permille, 1000u);
}

TEST_F(CounterRulesTest, WithoutALoadToCompareWithTheNumberDecides) {
  watch_.Sample({{"packet_seq_err", 0}}, std::nullopt, 1 * kSecond);
  EXPECT_GE(watch_.Sample({{"packet_seq_err", 200}}, std::nullopt, 2 * kSecond).permille, 1000u);
}

TEST_F(CounterRulesTest, ACounterThatWentBackCountsFromZero) {
  watch_.Sample({{"rx_errors", 1'000'000}}, 0, 1 * kSecond);
  EXPECT_EQ(watch_.Sample({{"rx_errors", 20}}, 0, 2 * kSecond).permille, 2000u);
}

TEST_F(CounterRulesTest, ALateSampleIsJudgedByItsMean) {
  watch_.Sample({{"rx_errors", 0}}, 0, 1 * kSecond);
  EXPECT_LT(watch_.Sample({{"rx_errors", 90}}, 0, 11 * kSecond).permille, 1000u) << "nine a second";
  EXPECT_GE(watch_.Sample({{"rx_errors", 290}}, 0, 21 * kSecond).permille, 2000u) << "twenty a second";
}

TEST_F(CounterRulesTest, TheWorstCounterSpeaks) {
  watch_.Sample({{"rx_errors", 0}, {"rx_crc_errors", 0}, {"unheard_of", 0}}, 0, 1 * kSecond);
  EXPECT_EQ(watch_.Sample({{"rx_errors", 30}, {"rx_crc_errors", 40}, {"unheard_of", 99'999}}, 0, 2 * kSecond).text,
            "40 rx_crc_errors in 1 s, the limit is 10");
}

// It may have been hit a million times since. That is no fault, and no health.
TEST_F(CounterRulesTest, AFullCounterIsReported) {
  const std::map<std::string, uint64_t> full = {{"link_downed", 255}, {"symbol_error", 65535}, {"packet_seq_err", 4294967295}};
  for (const auto& counter : full) {
    watch_.Reset();
    watch_.Sample({counter}, 0, 1 * kSecond);
    const auto verdict = watch_.Sample({counter}, 0, 2 * kSecond);
    EXPECT_EQ(verdict.permille, 0u);
    EXPECT_EQ(verdict.text,
              counter.first + " is full at " + std::to_string(counter.second) + " and counts no more: reset it (perfquery -R)");
  }
  watch_.Reset();
  watch_.Sample({{"link_downed", 255}, {"rx_errors", 0}}, 0, 1 * kSecond);
  const auto both = watch_.Sample({{"link_downed", 255}, {"rx_errors", 20}}, 0, 2 * kSecond);
  EXPECT_EQ(both.permille, 2000u);
  EXPECT_EQ(both.text, "20 rx_errors in 1 s, the limit is 10; link_downed is full at 255 and counts no more: reset it (perfquery -R)");
}

TEST_F(CounterRulesTest, AWiderCounterPassesThere) {
  watch_.Sample({{"link_downed", 254}}, 0, 1 * kSecond);
  EXPECT_EQ(watch_.Sample({{"link_downed", 255}}, 0, 2 * kSecond).text, "1 link_downed in 60 s, the limit is 3") << "it has just grown";
  EXPECT_EQ(watch_.Sample({{"link_downed", 256}}, 0, 3 * kSecond).text, "1 link_downed in 60 s, the limit is 3");
  EXPECT_EQ(watch_.Sample({{"rx_errors", 65535}}, 0, 4 * kSecond).text, "");
  EXPECT_EQ(watch_.Sample({{"rx_errors", 65535}}, 0, 5 * kSecond).text, "") << "it has 64 bits";
}

TEST_F(CounterRulesTest, ASampleAtTheSameTimeHarmsNothing) {
  watch_.Sample({{"rx_errors", 0}}, 0, kSecond);
  EXPECT_EQ(watch_.Sample({{"rx_errors", UINT64_MAX}}, 0, kSecond).permille, 1'000'000'000'000'000u);
}

// Every counter that is read has a rule, and every rule a counter.
TEST(CounterRules, FitWhatIsRead) {
  std::set<std::string> ruled, read;
  for (const CounterRule& rule : CounterRules()) ruled.insert(rule.counter);
  const FakeSysfs dgx = FakeSysfs::Load("health/io/testdata/dgx.sysfs");
  for (const char* nic : {"ibp24s0", "ens6f0np0"}) {
    const auto facts = ReadSysfsPortFacts(dgx, nic);
    ASSERT_TRUE(facts.ok()) << facts.status();
    for (const auto& [counter, count] : facts->errors) read.insert(counter);
  }
  EXPECT_EQ(ruled, read);
}

}  // namespace
}  // namespace r2cc::health
