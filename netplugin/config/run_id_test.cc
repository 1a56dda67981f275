#include "netplugin/config/run_id.h"

#include <gtest/gtest.h>

#include <map>

namespace r2cc::net {
namespace {

RunId Of(const std::map<std::string, std::string>& environment) {
  return RunOf([&](const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  });
}

TEST(RunId, EachLauncherHasARunId) {
  EXPECT_EQ(Of({{"SLURM_JOB_ID", "123"}}).id, "123");
  EXPECT_EQ(Of({{"SLURM_JOB_ID", "123"}, {"SLURM_STEP_ID", "0"}, {"SLURM_RESTART_COUNT", "2"}}).id, "123.0-r2");
  EXPECT_EQ(Of({{"SLURM_JOB_ID", "123"}, {"TORCHELASTIC_RUN_ID", "exp"}}).id, "123") << "torchrun under Slurm";
  EXPECT_EQ(Of({{"TORCHELASTIC_RUN_ID", "exp"}, {"TORCHELASTIC_RESTART_COUNT", "0"}}).id, "exp");
  EXPECT_EQ(Of({{"TORCHELASTIC_RUN_ID", "exp"}, {"TORCHELASTIC_RESTART_COUNT", "1"}}).id, "exp-r1");
  EXPECT_EQ(Of({{"TORCHELASTIC_RUN_ID", "none"}}).id, "") << "what torchrun says without --rdzv_id";
  EXPECT_EQ(Of({{"PMIX_NAMESPACE", "prterun-n0-4711@1"}}).id, "prterun-n0-4711@1");
  EXPECT_TRUE(Of({{"SLURM_JOB_ID", "123"}}).shared);
  const RunId pod = Of({{"POD_UID", "5f-07"}});
  EXPECT_EQ(pod.id, "5f-07");
  EXPECT_FALSE(pod.shared) << "each node has another";
  EXPECT_EQ(Of({}).id, "");
}

TEST(RunId, RankOfEachLauncher) {
  for (const char* const name : {"RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"})
    EXPECT_EQ(Of({{name, "3"}}).rank, 3u) << name;
  EXPECT_EQ(Of({{"RANK", "0"}, {"SLURM_PROCID", "7"}}).rank, 0u);
  for (const char* const odd : {"", "-1", "x", "1 ", "12345678901"}) EXPECT_EQ(Of({{"RANK", odd}}).rank, std::nullopt) << odd;
}

TEST(RunId, InvalidCharactersAreReplacedAndLongIdsCut) {
  EXPECT_EQ(Of({{"SLURM_JOB_ID", "1 2*\n"}}).id, "1_2__");
  EXPECT_EQ(Of({{"TORCHELASTIC_RUN_ID", std::string(100, 'x')}}).id, std::string(63, 'x'));
}

}  // namespace
}  // namespace r2cc::net
