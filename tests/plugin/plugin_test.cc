// libnccl-net-r2cc.so as NCCL would use it, over loopback rails and without a daemon: r2cc-perf drives the real library in real
// processes and checks every element.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "tests/control/perf_process.h"

namespace r2cc::control {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

constexpr char kPlugin[] = "netplugin/libnccl-net-r2cc.so";
constexpr char kFourRails[] = "127.0.0.1,127.0.0.2,127.0.0.3,127.0.0.4";

std::string PluginPath() { return kPlugin; }

// Sets variables of the plugin for the processes of one test.
class Environment {
 public:
  using Values = std::map<std::string, std::string>;
  explicit Environment(Values values) : values_(std::move(values)) {
    values_.emplace("R2CC_ATTACH", "none");
    for (const auto& [name, value] : values_) setenv(name.c_str(), value.c_str(), 1);
  }
  ~Environment() {
    for (const auto& [name, value] : values_) unsetenv(name.c_str());
  }

 private:
  std::map<std::string, std::string> values_;
};

void ExpectAllRight(const Outcome& outcome) {
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err << outcome.out;
  EXPECT_EQ(JsonNumber(outcome.LastLine(), "wrong_elements"), 0);
  EXPECT_EQ(JsonNumber(outcome.LastLine(), "late_writes"), 0);
  EXPECT_THAT(outcome.LastLine(), HasSubstr("\"pass\":true"));
}

// How often each rank whose last words are in `text` has given up a link of the rail. At R2CC_LOG=info.
std::vector<int> FailoversOf(const std::string& rail, const std::string& text) {
  std::vector<int> found;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    // "rail NODE/RAIL sent ..., N failovers, down"
    const size_t end = line.find(" failovers, down");
    if (end == std::string::npos || line.find("/" + rail + " sent ") == std::string::npos) continue;
    found.push_back(std::atoi(line.c_str() + line.rfind(' ', end - 1)));
  }
  return found;
}

TEST(PluginTest, EveryCollectiveEverySizeEveryElement) {
  const Environment environment({});
  for (const char* collective : {"all_reduce", "sendrecv", "alltoall"})
    for (const char* ranks : {"2", "4"}) {
      ExpectAllRight(
          RunPerf(PluginPath(), kFourRails,
                  {collective, "--ranks", ranks, "-b", "0", "-e", "9M", "-f", "11", "-n", "3", "-w", "1", "--json", "--timeout", "60"}));
      ExpectAllRight(
          RunPerf(PluginPath(), kFourRails,
                  {collective, "--ranks", ranks, "-b", "8388604", "-e", "8388612", "-i", "4", "-n", "2", "--json", "--timeout", "60"}));
    }
}

TEST(PluginTest, AllReducesByCollNetOfEverySizeEveryElement) {
  const Environment environment({});
  for (const char* version : {"8", "11"})
    for (const char* ranks : {"2", "5"})
      ExpectAllRight(RunPerf(PluginPath(), kFourRails,
                             {"--collnet", "--ranks", ranks, "-b", "0", "-e", "9M", "-f", "11", "-n", "3", "-w", "1", "--net-version",
                              version, "--json", "--timeout", "60"}));
}

TEST(PluginTest, ARailThatIsLostUnderCollNetChangesNothing) {
  const Environment environment(Environment::Values{{"R2CC_FAIL_RAILS", "127.0.0.2@300"}});
  const Outcome outcome =
      RunPerf(PluginPath(), kFourRails, {"--collnet", "--ranks", "4", "-b", "8M", "--seconds", "3", "--json", "--timeout", "60"});
  ExpectAllRight(outcome);
}

TEST(PluginTest, BothTablesOneRailAndManyChannels) {
  const Environment environment({});
  for (const char* version : {"8", "11"}) {
    ExpectAllRight(
        RunPerf(PluginPath(), "127.0.0.1", {"--ranks", "2", "-b", "5M", "-n", "3", "--net-version", version, "--json", "--timeout", "60"}));
    ExpectAllRight(
        RunPerf(PluginPath(), kFourRails,
                {"--ranks", "3", "-b", "5M", "-n", "3", "--channels", "9", "--net-version", version, "--json", "--timeout", "60"}));
  }
}

TEST(PluginTest, OtherChunkSizesSocketsAndChecksums) {
  const std::map<std::string, std::string> variations[] = {
      {{"R2CC_CHUNK_BYTES", "4096"}}, {{"R2CC_SOCKETS_PER_RAIL", "3"}},
      {{"R2CC_CHECKSUM", "1"}},       {{"R2CC_BULK_THREADS", "2"}},
      {{"R2CC_MODE", "0"}},           {{"R2CC_MODE", "1"}}};
  for (const auto& variation : variations) {
    const Environment environment(variation);
    ExpectAllRight(RunPerf(PluginPath(), kFourRails, {"--ranks", "2", "-b", "16M", "-n", "5", "--json", "--timeout", "60"}));
  }
}

// Rails that every rank loses in mid-run, one, two, then three of four: the bytes go on over the rest. A busy machine takes a second and
// more until there is something to lose.
TEST(PluginTest, RailsLostInMidRun) {
  for (const auto& [mode, bulk_threads] : {std::pair("1", "0"), std::pair("2", "0"), std::pair("2", "2")}) {
    const Environment environment(Environment::Values{{"R2CC_FAIL_RAILS", "127.0.0.2@3000,127.0.0.4@3600,127.0.0.1@4200"},
                                                      {"R2CC_MODE", mode},
                                                      {"R2CC_BULK_THREADS", bulk_threads},
                                                      {"R2CC_LOG", "info"}});
    const Outcome outcome =
        RunPerf(PluginPath(), kFourRails, {"--ranks", "2", "-b", "16M", "--seconds", "6", "--json", "--timeout", "60", "--debug"});
    ExpectAllRight(outcome);
    // Each rank sends to the other one by each rail, and by a cross-rail link while only one of them has lost it.
    for (const char* rail : {"127.0.0.1", "127.0.0.2", "127.0.0.4"}) {
      EXPECT_THAT(outcome.err, HasSubstr(std::string("rail ") + rail + " is down: R2CC_FAIL_RAILS"));
      const std::vector<int> failovers = FailoversOf(rail, outcome.err);
      EXPECT_EQ(failovers.size(), 2U) << outcome.err;
      for (const int count : failovers) EXPECT_GE(count, 1) << rail << outcome.err;
    }
  }
}

// Mode 0 is the baseline without protection: it must not survive, or the others prove nothing.
TEST(PluginTest, WithoutProtectionALostRailEndsTheJob) {
  const Environment environment(Environment::Values{{"R2CC_FAIL_RAILS", "127.0.0.2@1000"}, {"R2CC_MODE", "0"}});
  const Outcome outcome = RunPerf(PluginPath(), kFourRails, {"--ranks", "2", "-b", "16M", "--seconds", "6", "--json", "--timeout", "3"});
  EXPECT_EQ(outcome.exit_code, 1);
}

TEST(PluginTest, ADeadRailBeforeTheStart) {
  const Environment environment(Environment::Values{{"R2CC_FAIL_RAILS", "127.0.0.3"}});
  ExpectAllRight(RunPerf(PluginPath(), kFourRails, {"--ranks", "4", "-b", "4M", "-n", "5", "--json", "--timeout", "60"}));
}

// All rails gone for good: an error at the deadline that names the peer, the rails, the cause and the command that explains it; no hang.
TEST(PluginTest, AllRailsLostIsAnErrorAtTheDeadline) {
  const Environment environment(Environment::Values{{"R2CC_FAIL_RAILS", "127.0.0.1@1000,127.0.0.2@1000"}, {"R2CC_DEADLINE_MS", "2000"}});
  const Outcome outcome =
      RunPerf(PluginPath(), "127.0.0.1,127.0.0.2", {"--ranks", "2", "-b", "16M", "--seconds", "30", "--json", "--timeout", "20"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err,
              ContainsRegex(
                  "R2CC: job [^ ]+ \\(pid [0-9]+\\) on [^ ]+ gave up on [^ ]+ after 2\\.[0-9] s: [^;\n]*; r2ccctl (nic why|path probe) "));
  EXPECT_THAT(outcome.err, HasSubstr("ncclRemoteError"));
}

// A rank that is killed ends the others with an error that names it, long before the deadline.
TEST(PluginTest, AKilledRankIsAnErrorAtOnce) {
  const Environment environment(Environment::Values{{"R2CC_DEADLINE_MS", "60000"}});
  const std::string root = "127.0.0.1:" + std::to_string(FreePort());
  std::vector<std::unique_ptr<PerfProcess>> ranks;
  for (const char* rank : {"0", "1", "2"})
    ranks.push_back(std::make_unique<PerfProcess>(PluginPath(), kFourRails,
                                                  std::vector<std::string>{"--rank", rank, "--nranks", "3", "--root", root, "-b", "16M",
                                                                           "--seconds", "60", "--progress", "0.5", "--timeout", "50"}));
  ASSERT_TRUE(ranks[0]->WaitForError("iteration"));
  kill(ranks[2]->pid(), SIGKILL);
  for (int rank : {0, 1}) {
    const Outcome outcome = ranks[static_cast<size_t>(rank)]->Finish(30);
    EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  }
}

// ---- bad input: one line that names the thing and the way out ----

void ExpectRefusal(const std::string& rails, const std::map<std::string, std::string>& values, const std::string& words) {
  const Environment environment(values);
  const Outcome outcome = RunPerf(PluginPath(), rails, {"--ranks", "2", "-b", "1M", "-n", "1", "--timeout", "20"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr(words));
}

TEST(PluginTest, BadInputIsRefusedByName) {
  ExpectRefusal("nosuchif0", {}, "nosuchif0");
  ExpectRefusal(kFourRails, {{"R2CC_DEADLINE_MS", "soon"}}, "R2CC_DEADLINE_MS");
  ExpectRefusal(kFourRails, {{"R2CC_CHUNK_BYTES", "100"}}, "R2CC_CHUNK_BYTES");
  ExpectRefusal(kFourRails, {{"R2CC_TRANSPORT", "rdma"}}, "R2CC_TRANSPORT");
  // Loopback addresses have none on any machine.
  ExpectRefusal(kFourRails, {{"R2CC_TRANSPORT", "verbs"}}, "R2CC_TRANSPORT=verbs asks for one on each rail");
  ExpectRefusal(kFourRails, {{"R2CC_OOB_IFNAME", "nosuchif0"}}, "nosuchif0");
}

}  // namespace
}  // namespace r2cc::control
