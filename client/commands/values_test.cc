#include "client/commands/values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace r2cc::client {
namespace {

using testing::HasSubstr;

TEST(ParseNicName, SplitsNodeAndNic) {
  const auto name = ParseNicName("node-1.rack/eth0.100");
  ASSERT_TRUE(name.ok());
  EXPECT_EQ(name->node, "node-1.rack");
  EXPECT_EQ(name->nic, "eth0.100");
}

TEST(ParseNicName, RefusesAnythingElseAndNamesIt) {
  for (const char* text : {"", "/", "n0", "n0/", "/r0", "n0/r0/x", "n0//r0"}) {
    const auto name = ParseNicName(text);
    ASSERT_FALSE(name.ok()) << text;
    EXPECT_THAT(std::string(name.status().message()), testing::AllOf(HasSubstr("'" + std::string(text) + "'"), HasSubstr("NODE/NIC")));
  }
}

TEST(ParseWeight, TakesDecimalsAndPercent) {
  const std::pair<const char*, uint32_t> cases[] = {{"0", 0},     {"1", 1000},     {"1.0", 1000},    {"0.5", 500},
                                                    {".25", 250}, {"0.3333", 333}, {"0.9996", 1000}, {"0%", 0},
                                                    {"50%", 500}, {"100%", 1000},  {"0.1%", 1},      {"33.3%", 333}};
  for (const auto& [text, permille] : cases) {
    const auto parsed = ParseWeightPermille(text);
    ASSERT_TRUE(parsed.ok()) << text;
    EXPECT_EQ(*parsed, permille) << text;
  }
}

TEST(ParseWeight, RefusesWhatIsOutOfRangeOrNoNumber) {
  for (const char* text : {"", "%", "50", "1.001", "101%", "-0.1", "-1%", "nan", "inf", "half", "0.5x", "5 0%", "1e-1", "0x1", "50%%"}) {
    const auto parsed = ParseWeightPermille(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_THAT(std::string(parsed.status().message()), HasSubstr("'" + std::string(text) + "'"));
  }
}

TEST(ParseWeight, NeverTurnsASmallWeightIntoAForbiddenNic) {
  EXPECT_FALSE(ParseWeightPermille("0.0004").ok());
  EXPECT_FALSE(ParseWeightPermille("0.01%").ok());
  EXPECT_EQ(*ParseWeightPermille("0.0005"), 1u);
}

TEST(Nearest, FindsTyposAndNothingFarAway) {
  const std::vector<std::string> choices = {"status", "events", "jobs", "fail-nic"};
  EXPECT_EQ(Nearest("statsu", choices), "status");
  EXPECT_EQ(Nearest("failnic", choices), "fail-nic");
  EXPECT_EQ(Nearest("job", choices), "jobs");
  EXPECT_EQ(Nearest("teapot", choices), "");
  EXPECT_EQ(Nearest("", {"ab"}), "");
}

TEST(ValuesTest, Bytes) {
  EXPECT_EQ(*ParseBytes("1GiB"), 1073741824u);
  EXPECT_EQ(*ParseBytes("64 MiB"), 67108864u);
  EXPECT_EQ(*ParseBytes("1.5KiB"), 1536u);
  EXPECT_EQ(*ParseBytes("2GB"), 2000000000u);
  EXPECT_EQ(*ParseBytes("7"), 7u);
  for (const char* bad : {"", "GiB", "1Gib", "-1", "0", "1e9", "2PiB", "nan", "1 GiB x"}) EXPECT_FALSE(ParseBytes(bad).ok()) << bad;
}

TEST(ValuesTest, BitRates) {
  EXPECT_EQ(*ParseBitRate("400Gbit/s"), 400000000000u);
  EXPECT_EQ(*ParseBitRate("25 Gb/s"), 25000000000u);
  for (const char* bad : {"", "400", "0Gbit/s", "400GB/s", "inf"}) EXPECT_FALSE(ParseBitRate(bad).ok()) << bad;
}

TEST(ValuesTest, ShortTimes) {
  EXPECT_DOUBLE_EQ(*ParseShortTime("5us"), 5e-6);
  EXPECT_DOUBLE_EQ(*ParseShortTime("100 ns"), 1e-7);
  EXPECT_EQ(*ParseShortTime("0"), 0);
  for (const char* bad : {"", "5", "2s", "-1us", "1 min"}) EXPECT_FALSE(ParseShortTime(bad).ok()) << bad;
}

TEST(Values, DrillTimes) {
  constexpr int64_t kSecond = 1'000'000'000;
  EXPECT_EQ(*ParseDrillTime("10m"), 600 * kSecond);
  EXPECT_EQ(*ParseDrillTime("1h30m"), 5400 * kSecond);
  EXPECT_EQ(*ParseDrillTime("1s"), kSecond);
  EXPECT_EQ(*ParseDrillTime("24h"), 86400 * kSecond);
  for (const char* wrong : {"", "10", "0", "999ms", "24h1s", "-5m", "inf", "ten", "1d"})
    EXPECT_EQ(ParseDrillTime(wrong).status().message(),
              "'" + std::string(wrong) + "' is not how long a drill may last: 1s to 24h, such as 90s, 10m or 1h30m");
}

TEST(Values, Since) {
  const absl::Time now = absl::FromUnixSeconds(1'735'787'045);  // 2025-01-02 03:04:05 UTC
  const absl::TimeZone zone = absl::FixedTimeZone(3600);
  const auto seconds_ago = [&](absl::string_view text) { return absl::ToInt64Seconds(now - ParseSince(text, now, zone).value()); };
  EXPECT_EQ(seconds_ago("10m"), 600);
  EXPECT_EQ(seconds_ago("1h30m"), 5400);
  EXPECT_EQ(seconds_ago("2d"), 172800);
  EXPECT_EQ(seconds_ago("36 h"), 129600);
  EXPECT_EQ(seconds_ago("2025-01-02 04:04"), 5) << "in the zone";
  EXPECT_EQ(seconds_ago("2025-01-02 04:04:05"), 0);
  EXPECT_EQ(seconds_ago("2025-01-02"), 4 * 3600 + 4 * 60 + 5);
  EXPECT_EQ(seconds_ago("2025-01-02T03:04:00Z"), 5);
  for (const char* wrong : {"", "10", "yesterday", "-5m", "0s", "2025-13-01", "inf"})
    EXPECT_EQ(ParseSince(wrong, now, zone).status().code(), absl::StatusCode::kInvalidArgument) << wrong;
}

}  // namespace
}  // namespace r2cc::client
