// Flags, rank 0's decisions and books, and what it prints.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "tools/perf/conductor.h"
#include "tools/perf/options.h"
#include "tools/perf/report.h"

namespace r2cc::perf {
namespace {

struct Parsed {
  bool ok = false;
  int exit_code = -1;
  std::string output;
  Options options;
};

Parsed Parse(std::vector<std::string> words, const std::map<std::string, std::string>& variables = {}) {
  const Environment environment = [&](const char* name) {
    const auto at = variables.find(name);
    return at == variables.end() ? nullptr : at->second.c_str();
  };
  words.insert(words.begin(), "r2cc-perf");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  Parsed parsed;
  testing::internal::CaptureStderr();
  parsed.ok = ParseOptions(static_cast<int>(argv.size()), argv.data(), environment, &parsed.options, &parsed.exit_code);
  parsed.output = testing::internal::GetCapturedStderr();
  return parsed;
}

TEST(OptionsTest, SizesHaveSuffixes) {
  EXPECT_EQ(ParseSize("8"), 8);
  EXPECT_EQ(ParseSize("0"), 0);
  EXPECT_EQ(ParseSize("64K"), 65536);
  EXPECT_EQ(ParseSize("1.5M"), 1572864);
  EXPECT_EQ(ParseSize("2GiB"), int64_t{2} << 30);
  EXPECT_EQ(ParseSize("16mb"), 16 << 20);
  for (const char* bad : {"", "x", "-1", "8Q", "1e30", "nan", "inf", "8 K", "K"}) EXPECT_EQ(ParseSize(bad), std::nullopt) << bad;
}

TEST(OptionsTest, SizesWalkLikeNcclTests) {
  EXPECT_EQ(*SizesOf(8, 64, 2, 1), (std::vector<int64_t>{8, 16, 32, 64}));
  EXPECT_EQ(*SizesOf(0, 32, 2, 1), (std::vector<int64_t>{0, 8, 16, 32}));
  EXPECT_EQ(*SizesOf(10, 30, 1, 10), (std::vector<int64_t>{10, 20, 30}));
  EXPECT_EQ(*SizesOf(10, 10, 1, 10), (std::vector<int64_t>{10}));
  EXPECT_EQ(*SizesOf(1, 4, 1.001, 1), (std::vector<int64_t>{1, 2, 3, 4}));
  EXPECT_EQ(SizesOf(0, int64_t{1} << 40, 1, 1), std::nullopt);
}

TEST(OptionsTest, CollNetIsForAllReduceAndHasOneGroup) {
  EXPECT_TRUE(Parse({"--collnet", "--plugin", "x.so", "--ranks", "4"}).options.collnet);
  const Parsed other = Parse({"alltoall", "--collnet", "--plugin", "x.so", "--ranks", "4"});
  EXPECT_FALSE(other.ok);
  EXPECT_EQ(other.output, "r2cc-perf: --collnet is for all_reduce: the table has no alltoall\n");
  const Parsed channels = Parse({"--collnet", "--channels", "2", "--plugin", "x.so", "--ranks", "4"});
  EXPECT_FALSE(channels.ok);
  EXPECT_NE(channels.output.find("with --collnet a rank has one group"), std::string::npos);
}

TEST(OptionsTest, OtherTypesAreForRandomValuesByCollNet) {
  const Parsed half = Parse({"--collnet", "-d", "half", "--random", "7", "--plugin", "x.so", "--ranks", "4"});
  ASSERT_TRUE(half.ok) << half.output;
  EXPECT_EQ(half.options.type, abi::DataType::kFloat16);
  EXPECT_EQ(half.options.random_seed, 7u);
  EXPECT_NE(half.options.Job().find("-d half --random 7"), std::string::npos) << half.options.Job();
  EXPECT_EQ(Parse({"--random", "7", "--plugin", "x.so", "--ranks", "4"}).options.type, abi::DataType::kFloat32);
}

TEST(OptionsTest, GoodFlags) {
  const Parsed parsed = Parse(
      {"alltoall", "--plugin", "x.so", "--ranks", "4", "-b", "8", "-e", "1K", "-f", "2", "-n", "7", "-c", "0", "--pin", "2", "--json"});
  ASSERT_TRUE(parsed.ok) << parsed.output;
  EXPECT_EQ(parsed.options.collective, Collective::kAllToAll);
  EXPECT_EQ(parsed.options.sizes_bytes.size(), 8u);
  EXPECT_EQ(parsed.options.ranks, 4);
  EXPECT_EQ(parsed.options.iterations, 7);
  EXPECT_FALSE(parsed.options.check);
  EXPECT_EQ(parsed.options.pin, 2);
}

TEST(OptionsTest, BadFlagsGetOneLineAndCode2) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"--ranks", "2"}, "--plugin"},
      {{"--plugin", "x"}, "--ranks N starts them all here"},
      {{"--plugin", "x", "--ranks", "2", "--bogus"}, "--bogus"},
      {{"--plugin", "x", "--ranks", "1"}, "--ranks"},
      {{"--plugin", "x", "--ranks", "two"}, "two"},
      {{"--plugin", "x", "--ranks", "2", "--pin", "0"}, "--pin"},
      {{"--plugin", "x", "--ranks", "2", "--rank", "0"}, "give one of them"},
      {{"--plugin", "x", "--rank", "0"}, "--nranks N and --root HOST:PORT"},
      {{"--plugin", "x", "--rank", "2", "--nranks", "2", "--root", "a:1"}, "not below --nranks 2"},
      {{"--plugin", "x", "--ranks", "2", "-b", "8Q"}, "'8Q' is no size"},
      {{"--plugin", "x", "--ranks", "2", "-b", "8", "-e", "4"}, "-e 4 is less than -b 8"},
      {{"--plugin", "x", "--ranks", "2", "-f", "0.5"}, "-f must be at least 1"},
      {{"--plugin", "x", "--ranks", "2", "-b", "0", "-e", "1G", "-i", "1"}, "use -f 2"},
      {{"--plugin", "x", "--ranks", "2", "-d", "int8"}, "unknown type 'int8'; it is float, half or bfloat16"},
      {{"--plugin", "x", "--ranks", "2", "-d", "half", "--collnet"}, "-d half goes with --collnet and --random SEED"},
      {{"--plugin", "x", "--ranks", "2", "-d", "half", "--random", "1"}, "-d half goes with --collnet and --random SEED"},
      {{"--plugin", "x", "--ranks", "2", "--random", "one"}, "--random"},
      {{"sendrecv", "--plugin", "x", "--ranks", "2", "--random", "1"}, "--random is for all_reduce: sendrecv adds nothing up"},
      {{"--plugin", "x", "--ranks", "2", "--random", "1", "-c", "0"}, "--random compares results and -c 0 does not"},
      {{"all_gather", "--plugin", "x", "--ranks", "2"}, "unknown collective 'all_gather'"},
  };
  for (const auto& [words, text] : cases) {
    const Parsed parsed = Parse(words);
    EXPECT_FALSE(parsed.ok);
    EXPECT_EQ(parsed.exit_code, 2) << text;
    EXPECT_NE(parsed.output.find(text), std::string::npos) << parsed.output;
    EXPECT_EQ(std::count(parsed.output.begin(), parsed.output.end(), '\n'), 1) << parsed.output;
  }
}

TEST(OptionsTest, TheLauncherGivesTheRank) {
  const std::map<std::string, std::string> mpich = {{"PMI_RANK", "1"}, {"PMI_SIZE", "4"}};
  const Parsed launched = Parse({"--plugin", "x", "--root", "a:1"}, mpich);
  ASSERT_TRUE(launched.ok) << launched.output;
  EXPECT_EQ(launched.options.rank, 1);
  EXPECT_EQ(launched.options.ranks, 4);
  EXPECT_EQ(launched.options.root, "a:1");
  std::map<std::string, std::string> meeting = mpich;
  meeting["MASTER_ADDR"] = "b";
  meeting["MASTER_PORT"] = "2";
  EXPECT_EQ(Parse({"--plugin", "x"}, meeting).options.root, "b:2");
  EXPECT_EQ(Parse({"--plugin", "x", "--root", "a:1"}, meeting).options.root, "a:1");
  // The flags count.
  EXPECT_EQ(Parse({"--plugin", "x", "--ranks", "2"}, meeting).options.rank, -1);
  EXPECT_EQ(Parse({"--plugin", "x", "--rank", "0", "--nranks", "2", "--root", "a:1"}, meeting).options.ranks, 2);
  const Parsed nowhere = Parse({"--plugin", "x"}, mpich);
  EXPECT_EQ(nowhere.exit_code, 2);
  EXPECT_EQ(nowhere.output,
            "r2cc-perf: rank 1 of 4 of MPICH, and where do they meet? --root HOST:PORT, or MASTER_ADDR and MASTER_PORT, name rank 0's "
            "machine and a free port there\n");
  EXPECT_EQ(Parse({"--plugin", "x"}, {{"PMI_RANK", "9"}, {"PMI_SIZE", "4"}}).exit_code, 2);
}

Options TwoSizes() {
  Options options;
  options.ranks = 2;
  options.sizes_bytes = {8, 16};
  options.iterations = 3;
  options.warmup_iterations = 1;
  return options;
}

TEST(ConductorTest, WalksSizesWarmUpsAndIterations) {
  Conductor conductor(TwoSizes());
  std::string order;
  std::vector<Report> reports(2);
  for (Command command = conductor.Next(reports, 0); command.run != 0; command = conductor.Next(reports, 0)) {
    order += std::to_string(command.size_index) + (command.timed != 0 ? "t" : "w") + std::to_string(command.iteration) + " ";
    reports[0].duration_ns = 1000 * (command.iteration + 1);
    reports[1].duration_ns = 10;
  }
  EXPECT_EQ(order, "0w0 0t1 0t2 0t3 1w4 1t5 1t6 1t7 ");
  ASSERT_EQ(conductor.rows().size(), 2u);
  EXPECT_EQ(conductor.rows()[0].iterations, 3);
  EXPECT_DOUBLE_EQ(conductor.rows()[0].time_us, 3);
  EXPECT_DOUBLE_EQ(conductor.rows()[0].time_us_min, 2);
  EXPECT_DOUBLE_EQ(conductor.rows()[0].time_us_max, 4);
  EXPECT_DOUBLE_EQ(conductor.rows()[0].algorithm_bytes_per_second, 8 / 3e-6);
}

TEST(ConductorTest, CpuTimeIsOfTheTimedIterationsAndOfAllRanks) {
  Options options = TwoSizes();
  options.sizes_bytes = {8};
  Conductor conductor(options);
  std::vector<Report> reports(2);
  int iteration = 0;
  // The warm-up (the first) costs 100 us a rank, the others 10 and 20 us; their times are 5, 1 and 2 us.
  const int64_t times_ns[] = {7000, 5000, 1000, 2000};
  while (conductor.Next(reports, 0).run != 0) {
    reports[0].cpu_ns += iteration == 0 ? 100'000 : 10'000;
    reports[1].cpu_ns += iteration == 0 ? 100'000 : 20'000;
    reports[0].duration_ns = times_ns[iteration++];
  }
  ASSERT_EQ(conductor.rows().size(), 1u);
  EXPECT_DOUBLE_EQ(conductor.rows()[0].cpu_us, 30);
  EXPECT_DOUBLE_EQ(conductor.rows()[0].time_us_median, 2);
}

TEST(ConductorTest, WrongElementsOfAllRanksAndWarmUpsCount) {
  Conductor conductor(TwoSizes());
  std::vector<Report> reports(2);
  Command command = conductor.Next(reports, 0);
  while (command.run != 0) {
    reports = {{1, 1, 5, 0, 0}, {1, 2, 7, 0, 0}};
    command = conductor.Next(reports, 0);
  }
  EXPECT_EQ(conductor.rows()[0].wrong, 4 * 3);
  EXPECT_EQ(conductor.wrong_elements(), 8 * 3);
  EXPECT_EQ(conductor.late_writes(), 12);
  EXPECT_FALSE(Passed(conductor));
}

TEST(ConductorTest, ResultsOfRandomValuesAreTheSameInAllIterationsOnAllRanks) {
  Options options = TwoSizes();
  options.random_seed = 1;
  options.type = abi::DataType::kFloat16;
  Conductor conductor(options);
  std::vector<Report> reports(2);
  for (Command command = conductor.Next(reports, 0); command.run != 0; command = conductor.Next(reports, 0)) {
    // Each size has its own result. One rank has another one in the last iteration but one.
    reports[0].hash = reports[1].hash = 100 + static_cast<uint64_t>(command.size_index);
    if (command.iteration == 6) reports[1].hash = 5;
  }
  ASSERT_EQ(conductor.rows().size(), 2u);
  EXPECT_EQ(conductor.rows()[0].count, 4);
  EXPECT_EQ(conductor.rows()[0].wrong, 0);
  EXPECT_EQ(conductor.rows()[0].hash, 100u);
  EXPECT_EQ(conductor.rows()[1].hash, 101u);
  EXPECT_EQ(conductor.rows()[1].wrong, 8);
  EXPECT_EQ(conductor.wrong_elements(), 8);
  const std::string json = Json(options, {"N", 11, 1, "a"}, conductor, "");
  EXPECT_NE(json.find("\"type\":\"half\""), std::string::npos) << json;
  EXPECT_NE(json.find("\"wrong\":0,\"hash\":\"0000000000000064\"}"), std::string::npos) << json;
  EXPECT_NE(TableRow(options, conductor.rows()[0]).find(" half "), std::string::npos);
  EXPECT_NE(TableRow(options, conductor.rows()[0]).find(" 0000000000000064\n"), std::string::npos);
}

TEST(ConductorTest, SecondsRepeatTheLastSize) {
  Options options = TwoSizes();
  options.seconds = 2;
  Conductor conductor(options);
  std::vector<Report> reports(2);
  int64_t now = 0;
  int iterations = 0;
  while (conductor.Next(reports, now).run != 0) {
    ++iterations;
    now += 100'000'000;
    ASSERT_LT(iterations, 1000);
  }
  EXPECT_EQ(iterations, 4 + 20);
}

TEST(ConductorTest, AnyRankCanStopTheRun) {
  Conductor conductor(TwoSizes());
  std::vector<Report> reports(2);
  EXPECT_EQ(conductor.Next(reports, 0).run, 1);
  EXPECT_EQ(conductor.Next(reports, 0).run, 1);
  reports[1].stop_wanted = 1;
  EXPECT_EQ(conductor.Next(reports, 0).run, 0);
  EXPECT_TRUE(conductor.stopped());
  ASSERT_EQ(conductor.rows().size(), 1u);
  EXPECT_EQ(conductor.rows()[0].iterations, 1);
}

TEST(ReportTest, JsonIsOneLineInBitsPerSecond) {
  Options options = TwoSizes();
  options.plugin = "dir \"x\"\n.so";
  options.sizes_bytes = {1000000};
  options.warmup_iterations = 0;
  options.iterations = 1;
  Conductor conductor(options);
  std::vector<Report> reports(2);
  conductor.Next(reports, 0);
  reports[0].duration_ns = 1'000'000;
  reports[1].cpu_ns = 2'500'000;
  conductor.Next(reports, 0);
  const std::string json = Json(options, {"N", 11, 1, "a, b"}, conductor, "");
  EXPECT_EQ(json.find('\n'), std::string::npos);
  EXPECT_NE(json.find("\"plugin\":\"dir \\\"x\\\"\\u000a.so\""), std::string::npos) << json;
  EXPECT_NE(json.find("\"pass\":true"), std::string::npos) << json;
  EXPECT_NE(json.find("\"busbw_gbps\":8.000000"), std::string::npos) << json;
  EXPECT_NE(json.find("\"time_us_median\":1000.000,"), std::string::npos) << json;
  EXPECT_NE(json.find("\"cpu_us\":2500.000,"), std::string::npos) << json;
  EXPECT_EQ(json.find("error\":"), std::string::npos) << json;
  const std::string failed = Json(options, {"N", 11, 1, "a"}, conductor, "gone");
  EXPECT_NE(failed.find("\"pass\":false,\"error\":\"gone\""), std::string::npos) << failed;
  EXPECT_NE(TableRow(options, conductor.rows()[0]).find("1.000    1.000       0"), std::string::npos)
      << TableRow(options, conductor.rows()[0]);
}

}  // namespace
}  // namespace r2cc::perf
