// A rank that is killed while its forked children go on sleeping with copies of its descriptors: the others must hear of it at once, in one
// line that names the peer and the cause.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "tests/control/perf_process.h"
#include "tests/plugin/own_process.h"

namespace r2cc::plugin_test {
namespace {

using control::Outcome;
using control::PerfProcess;
using testing::HasSubstr;

constexpr char kPlugin[] = "netplugin/libnccl-net-r2cc.so";
constexpr char kFourRails[] = "127.0.0.1,127.0.0.2,127.0.0.3,127.0.0.4";
constexpr double kErrorWithinS = 2;

// The children that a rank says it has forked; ended when the test ends.
class Orphans {
 public:
  ~Orphans() {
    for (const pid_t pid : pids_) kill(pid, SIGKILL);
  }
  void Learn(const std::string& text) {
    const std::string words = "forked child ";
    for (size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1))
      pids_.push_back(std::atoi(text.c_str() + at + words.size()));
  }
  size_t alive() const {
    size_t count = 0;
    for (const pid_t pid : pids_) count += kill(pid, 0) == 0 ? 1 : 0;
    return count;
  }

 private:
  std::vector<pid_t> pids_;
};

std::vector<std::string> LinesWith(const std::string& text, const std::string& words) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    if (const std::string line = text.substr(begin, end - begin); line.find(words) != std::string::npos) lines.push_back(line);
    begin = end + 1;
  }
  return lines;
}

std::string Tail(const std::string& text) { return text.substr(text.size() - std::min<size_t>(text.size(), 1000)); }

class KilledRankTest : public testing::TestWithParam<const char*> {};

TEST_P(KilledRankTest, TheOthersHearOfItAtOnce) {
  constexpr int kRanks = 3;
  constexpr int kKilled = 2;
  setenv("R2CC_ATTACH", "none", 1);
  setenv("R2CC_DEADLINE_MS", "60000", 1);
  const std::string root = "127.0.0.1:" + std::to_string(control::FreePort());
  std::vector<std::unique_ptr<PerfProcess>> ranks;
  for (int rank = 0; rank < kRanks; ++rank) {
    setenv("R2CC_NODE", ("node" + std::to_string(rank)).c_str(), 1);
    const std::vector<std::string> flags = {GetParam(),
                                            "--rank",
                                            std::to_string(rank),
                                            "--nranks",
                                            std::to_string(kRanks),
                                            "--root",
                                            root,
                                            "-b",
                                            "4M",
                                            "--seconds",
                                            "100",
                                            "--progress",
                                            "1",
                                            "--timeout",
                                            "90",
                                            "--fork-children",
                                            rank == kKilled ? "2" : "0"};
    ranks.push_back(std::make_unique<PerfProcess>(kPlugin, kFourRails, flags));
  }
  // Its children are there, and the job moves.
  ASSERT_TRUE(ranks[kKilled]->WaitForError("forked child")) << Tail(ranks[kKilled]->Finish(0).err);
  ASSERT_TRUE(ranks[0]->WaitForError("%") || ranks[0]->WaitForError("iter"));
  Orphans orphans;
  kill(ranks[kKilled]->pid(), SIGKILL);
  const double killed_s = NowS();
  for (int rank = 0; rank < kKilled; ++rank) {
    EXPECT_TRUE(ranks[rank]->WaitForError("peer node2 is gone", 30)) << "rank " << rank << " says nothing of its peer";
    EXPECT_LE(NowS() - killed_s, kErrorWithinS) << "rank " << rank;
  }
  orphans.Learn(ranks[kKilled]->Finish(30).err);
  EXPECT_EQ(orphans.alive(), 2u);
  for (int rank = 0; rank < kKilled; ++rank) {
    const Outcome outcome = ranks[rank]->Finish(30);
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_EQ(LinesWith(outcome.err, "ncclRemoteError").size(), 1u) << Tail(outcome.err);
    const std::vector<std::string> lines = LinesWith(outcome.err, "is gone: ");
    ASSERT_EQ(lines.size(), 1u) << Tail(outcome.err);
    EXPECT_THAT(lines.front(), HasSubstr("peer node2 is gone: its address refuses connections"));
  }
}

INSTANTIATE_TEST_SUITE_P(Collectives, KilledRankTest, testing::Values("all_reduce", "alltoall"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace r2cc::plugin_test
