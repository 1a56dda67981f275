#include "tools/perf/launched_rank.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace r2cc::perf {
namespace {

struct Outcome {
  std::string error;
  std::optional<LaunchedRank> found;
};

Outcome Find(const std::map<std::string, std::string>& variables) {
  Outcome outcome;
  outcome.error = FindLaunchedRank(
                      [&](const char* name) {
                        const auto at = variables.find(name);
                        return at == variables.end() ? nullptr : at->second.c_str();
                      },
                      &outcome.found)
                      .message();
  return outcome;
}

void ExpectRank(const Outcome& outcome, const std::string& launcher, int rank, int ranks, const std::string& root) {
  EXPECT_EQ(outcome.error, "");
  ASSERT_TRUE(outcome.found.has_value());
  EXPECT_EQ(outcome.found->launcher, launcher);
  EXPECT_EQ(outcome.found->rank, rank);
  EXPECT_EQ(outcome.found->ranks, ranks);
  EXPECT_EQ(outcome.found->root, root);
}

TEST(LaunchedRankTest, EachLauncherHasItsOwnVariables) {
  ExpectRank(Find({{"OMPI_COMM_WORLD_RANK", "3"}, {"OMPI_COMM_WORLD_SIZE", "4"}}), "Open MPI", 3, 4, "");
  ExpectRank(Find({{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}}), "MPICH", 0, 2, "");
  ExpectRank(Find({{"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "2"}}), "Slurm", 1, 2, "");
  ExpectRank(Find({{"RANK", "1"}, {"WORLD_SIZE", "8"}}), "torchrun", 1, 8, "");
}

TEST(LaunchedRankTest, TheInnerLauncherCounts) {
  ExpectRank(Find({{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"OMPI_COMM_WORLD_RANK", "5"}, {"OMPI_COMM_WORLD_SIZE", "8"}}),
             "Open MPI", 5, 8, "");
}

TEST(LaunchedRankTest, TheMeetingPointIsGivenAsForPyTorch) {
  ExpectRank(Find({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MASTER_ADDR", "10.0.0.1"}, {"MASTER_PORT", "29500"}}), "MPICH", 1, 2,
             "10.0.0.1:29500");
  ExpectRank(Find({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MASTER_ADDR", "10.0.0.1"}}), "MPICH", 1, 2, "");
}

TEST(LaunchedRankTest, WithoutALauncherThereIsNone) {
  EXPECT_FALSE(Find({}).found.has_value());
  EXPECT_EQ(Find({}).error, "");
  // A batch script is no step.
  EXPECT_FALSE(Find({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}}).found.has_value());
}

TEST(LaunchedRankTest, AValueThatIsNoRankIsRefused) {
  const std::string no_rank = ": that is no rank of a job; give --rank, --nranks and --root";
  for (const char* const bad : {"x", "", "-1", "2", "1x", "99999999999"}) {
    const Outcome outcome = Find({{"PMI_RANK", bad}, {"PMI_SIZE", "2"}});
    EXPECT_FALSE(outcome.found.has_value());
    EXPECT_EQ(outcome.error, "MPICH has PMI_RANK='" + std::string(bad) + "', PMI_SIZE='2'" + no_rank);
  }
  EXPECT_EQ(Find({{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}}).error,
            "Slurm has SLURM_PROCID='0', SLURM_STEP_NUM_TASKS='1': a job here has 2 to 4096 ranks; --ranks N starts them all here");
}

}  // namespace
}  // namespace r2cc::perf
