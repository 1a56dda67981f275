// r2cc-perf and the plain plugin, end to end: right data pass, and every planted fault is noticed and named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "tests/control/perf_process.h"

namespace r2cc::control {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;

constexpr char kPlain[] = "libnccl-net-plain.so";
constexpr char kOneRail[] = "127.0.0.1";
constexpr char kTwoRails[] = "127.0.0.1,127.0.0.2";

// What the ranks say about failures: one line each (other lines are progress and the plugin's own warnings).
int FailureLines(const std::string& err, const std::string& text) {
  int lines = 0;
  for (size_t at = err.find(text); at != std::string::npos; at = err.find(text, at + 1)) ++lines;
  return lines;
}

class PlainPlugin : public testing::TestWithParam<std::tuple<const char*, int, const char*>> {};

TEST_P(PlainPlugin, EveryElementIsRight) {
  const auto [collective, ranks, rails] = GetParam();
  const std::vector<std::vector<std::string>> sizes = {
      {"-b", "0", "-e", "8M", "-f", "8"}, {"-b", "1", "-e", "9M", "-f", "11"}, {"-b", "8388604", "-e", "8388612", "-i", "4"}};
  for (const auto& range : sizes) {
    std::vector<std::string> flags = {collective, "--ranks", std::to_string(ranks), "-n", "3", "-w", "1", "--json", "--timeout", "60"};
    flags.insert(flags.end(), range.begin(), range.end());
    const Outcome outcome = RunPerf(kPlain, rails, flags);
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err << outcome.out;
    EXPECT_EQ(JsonNumber(outcome.LastLine(), "wrong_elements"), 0);
    EXPECT_EQ(JsonNumber(outcome.LastLine(), "late_writes"), 0);
    EXPECT_THAT(outcome.LastLine(), HasSubstr("\"pass\":true"));
    EXPECT_EQ(JsonNumber(outcome.LastLine(), "channels"), std::string(rails) == kTwoRails ? 2 : 1);
  }
}

INSTANTIATE_TEST_SUITE_P(ControlTest, PlainPlugin,
                         testing::Combine(testing::Values("all_reduce", "sendrecv", "alltoall"), testing::Values(2, 4),
                                          testing::Values(kOneRail, kTwoRails)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param)) + "_" + std::to_string(std::get<1>(info.param)) + "ranks_" +
                                  (std::string(std::get<2>(info.param)) == kTwoRails ? "2rails" : "1rail");
                         });

TEST(ControlTest, BothTablesWorkAndMoreChannelsThanRails) {
  for (const char* version : {"8", "11"}) {
    const Outcome outcome =
        RunPerf(kPlain, kTwoRails, {"--ranks", "3", "-b", "5M", "-n", "2", "--channels", "5", "--net-version", version, "--json"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_THAT(outcome.LastLine(), HasSubstr(std::string("\"net_version\":") + version));
  }
}

TEST(ControlTest, ALateWriteFails) {
  const Outcome outcome = RunPerf("libnccl-net-plain-late.so", kOneRail, {"--ranks", "2", "-b", "16M", "-n", "5", "--json"});
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  EXPECT_GT(JsonNumber(outcome.LastLine(), "late_writes"), 0);
  EXPECT_THAT(outcome.LastLine(), HasSubstr("\"pass\":false"));
  EXPECT_THAT(outcome.out, MatchesRegex("(.|\n)*# Late writes          : [1-9][0-9]* FAILED\n(.|\n)*"));
}

TEST(ControlTest, SwappedSlicesFail) {
  const Outcome outcome = RunPerf("libnccl-net-plain-swap.so", kOneRail, {"--ranks", "2", "-b", "16M", "-n", "5", "--json"});
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  EXPECT_GT(JsonNumber(outcome.LastLine(), "wrong_elements"), 262144) << "at least one slice";
  EXPECT_EQ(JsonNumber(outcome.LastLine(), "late_writes"), 0);
  EXPECT_THAT(outcome.out, MatchesRegex("(.|\n)*# Wrong elements       : [1-9][0-9]* FAILED\n(.|\n)*"));
}

TEST(ControlTest, ASendReportedDoneTooEarlyFails) {
  // So many ranks and bytes that some receiver is always behind: else the data have left in time.
  const Outcome outcome =
      RunPerf("libnccl-net-plain-early.so", kOneRail, {"--ranks", "4", "-b", "64M", "-n", "5", "--json", "--timeout", "3"});
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  EXPECT_GT(JsonNumber(outcome.LastLine(), "wrong_elements"), 0);
}

TEST(ControlTest, WithoutTheCheckSwappedSlicesPass) {
  const Outcome outcome = RunPerf("libnccl-net-plain-swap.so", kOneRail, {"--ranks", "2", "-b", "16M", "-n", "5", "-c", "0", "--json"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.LastLine(), HasSubstr("\"checked\":false"));
}

TEST(ControlTest, SilenceEndsAtTheTimeoutAndNamesTheFlow) {
  const Outcome outcome =
      RunPerf("libnccl-net-plain-silent.so", kOneRail, {"--ranks", "3", "-b", "48M", "-n", "5", "--timeout", "2", "--json"});
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  EXPECT_THAT(outcome.LastLine(),
              MatchesRegex(".*\"error\":\".*nothing completed for 2.0 s .--timeout.; longest waiting of .* rank [0-9] on channel 0 .*"));
  EXPECT_EQ(FailureLines(outcome.err, "nothing completed for"), 3) << "one line a rank\n" << outcome.err;
}

TEST(ControlTest, AnErrorOfThePluginEndsAllRanksWithItsReason) {
  const Outcome outcome = RunPerf("libnccl-net-plain-error.so", kOneRail, {"--ranks", "3", "-b", "48M", "-n", "5", "--json"});
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  EXPECT_THAT(
      outcome.LastLine(),
      MatchesRegex(".*\"pass\":false,\"error\":\".*(test|irecv) returned ncclRemoteError .6.: receive from rank [0-9] on channel 0.*"));
  EXPECT_THAT(outcome.err, HasSubstr("NET/PLAIN WARN recv: Network is down"));
  EXPECT_EQ(FailureLines(outcome.err, " returned ncclRemoteError"), 3) << "one line a rank\n" << outcome.err;
}

TEST(ControlTest, AKilledRankEndsTheOthers) {
  const int port = FreePort();
  std::vector<std::unique_ptr<PerfProcess>> ranks;
  for (int rank = 0; rank < 3; ++rank)
    ranks.push_back(std::make_unique<PerfProcess>(
        kPlain, kOneRail,
        std::vector<std::string>{"--rank", std::to_string(rank), "--nranks", "3", "--root", "127.0.0.1:" + std::to_string(port), "-b", "1M",
                                 "--seconds", "100", "--progress", "0.5", "--json"}));
  ASSERT_TRUE(ranks[0]->WaitForError(" timed, "));
  kill(ranks[1]->pid(), SIGKILL);
  const Outcome root = ranks[0]->Finish(), killed = ranks[1]->Finish(), other = ranks[2]->Finish();
  EXPECT_EQ(killed.exit_code, 128 + SIGKILL);
  EXPECT_EQ(root.exit_code, 1) << root.err;
  EXPECT_EQ(other.exit_code, 1) << other.err;
  EXPECT_THAT(root.LastLine(), HasSubstr("\"pass\":false,\"error\":"));
  // Whichever is noticed first: the bootstrap or the data connection.
  EXPECT_TRUE(root.err.find("rank 1 is gone") != std::string::npos || root.err.find("ncclRemoteError") != std::string::npos) << root.err;
}

TEST(ControlTest, ASignalStopsAllRanksAfterTheIteration) {
  // No warm-up: the iteration that the signal meets is timed.
  PerfProcess process(kPlain, kTwoRails, {"--ranks", "2", "-b", "4M", "-w", "0", "--seconds", "100", "--progress", "0.5", "--json"});
  ASSERT_TRUE(process.WaitForError(" timed, "));
  kill(process.pid(), SIGTERM);
  const Outcome outcome = process.Finish(30);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.LastLine(), HasSubstr("\"stopped\":true,\"pass\":true"));
  EXPECT_GT(JsonNumber(outcome.LastLine(), "iterations"), 0);
}

TEST(ControlTest, SecondsRepeatTheLastSizeInADistributedJob) {
  const int port = FreePort();
  const std::string root = "127.0.0.1:" + std::to_string(port);
  const auto flags = [&](const char* rank) {
    return std::vector<std::string>{"alltoall", "--rank", rank, "--nranks", "2",  "--root", root,        "-b", "1M",
                                    "-e",       "2M",     "-f", "2",        "-n", "2",      "--seconds", "1",  "--json"};
  };
  PerfProcess other(kPlain, kTwoRails, flags("1")), first(kPlain, kTwoRails, flags("0"));
  const Outcome outcome = first.Finish();
  EXPECT_EQ(other.Finish().exit_code, 0);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::string json = outcome.LastLine();
  EXPECT_EQ(JsonNumber(json, "iterations"), 2);
  EXPECT_GT(JsonNumber(json.substr(json.rfind("\"size_bytes\"")), "iterations"), 5);
}

TEST(ControlTest, TraceHoldsEveryByteOfEveryRank) {
  const std::string prefix = testing::TempDir() + "/perf";
  ASSERT_EQ(RunPerf(kPlain, kTwoRails, {"--ranks", "2", "-b", "8M", "-n", "3", "-w", "0", "--trace", prefix}).exit_code, 0);
  for (int rank = 0; rank < 2; ++rank) {
    std::ifstream file(prefix + "." + std::to_string(rank) + ".csv");
    std::string line;
    ASSERT_TRUE(std::getline(file, line));
    EXPECT_EQ(line, "kind,time_ns,rank,flow,bytes,wait_ns");
    int64_t sent = 0, received = 0;
    int iterations = 0;
    while (std::getline(file, line)) {
      char kind[16] = "", flow[32] = "";
      long long time = 0, in_rank = 0, bytes = 0, wait = 0;
      ASSERT_EQ(sscanf(line.c_str(), "%15[^,],%lld,%lld,%31[^,],%lld,%lld", kind, &time, &in_rank, flow, &bytes, &wait), 6) << line;
      EXPECT_EQ(in_rank, rank);
      EXPECT_GE(wait, 0);
      sent += std::string(kind) == "send" ? bytes : 0;
      received += std::string(kind) == "recv" ? bytes : 0;
      iterations += std::string(kind) == "iteration" ? 1 : 0;
    }
    EXPECT_EQ(sent, 3 * (8 << 20));
    EXPECT_EQ(received, sent);
    EXPECT_EQ(iterations, 3);
  }
}

TEST(ControlTest, BadInputGetsOneLine) {
  Outcome outcome = RunPerf("/nonexistent.so", kOneRail, {"--ranks", "4"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("cannot load the plugin '/nonexistent.so'"));
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;

  outcome = RunPerf(kPlain, "nosuchif9", {"--ranks", "2"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("there is no interface 'nosuchif9'"));

  outcome = RunPerf(kPlain, kOneRail, {"--ranks", "2", "--trace", "/nonexistent/x"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("cannot write the trace /nonexistent/x."));

  outcome = RunPerf(kPlain, kOneRail, {"--ranks", "2", "--frobnicate"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
}

}  // namespace
}  // namespace r2cc::control
