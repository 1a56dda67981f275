#include "client/jobs/job_env.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>

namespace r2cc::client {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// What a shell has in `name` once it has read the lines.
std::string InShell(const std::string& lines, const std::string& name) {
  const std::string file = testing::TempDir() + "/job_env.sh";
  FILE* const script = fopen(file.c_str(), "w");
  fputs((lines + "\nprintf %s \"$" + name + "\"\n").c_str(), script);
  fclose(script);
  FILE* const shell = popen(("env -i LD_LIBRARY_PATH=/mine sh " + file).c_str(), "r");
  char buffer[256] = {};
  const size_t got = fread(buffer, 1, sizeof(buffer), shell);
  EXPECT_EQ(pclose(shell), 0) << lines;
  return std::string(buffer, got);
}

TEST(JobEnv, ShellsReadTheLines) {
  for (const char* launcher : {"torchrun", "mpirun", "slurm"}) {
    const std::string lines = FormatJobEnv({launcher, "it's $HOME", "eth1,eth2", "/opt/r2cc lib", "/run/other"});
    EXPECT_EQ(InShell(lines, "NCCL_NET_PLUGIN"), "r2cc") << lines;
    EXPECT_EQ(InShell(lines, "NCCL_NET"), "R2CC");
    EXPECT_EQ(InShell(lines, "R2CC_RAILS"), "eth1,eth2");
    EXPECT_EQ(InShell(lines, "R2CC_JOB"), "it's $HOME");
    EXPECT_EQ(InShell(lines, "LD_LIBRARY_PATH"), "/opt/r2cc lib:/mine");
    EXPECT_EQ(InShell(lines, "R2CC_ATTACH"), "/run/other/attach.sock");
  }
}

TEST(JobEnv, EachLauncherHasItsOwn) {
  EXPECT_EQ(FormatJobEnv({"torchrun", "", "", "", "/run/r2cc"}),
            "# In the script that each node runs, before torchrun: its workers inherit them.\n"
            "export NCCL_NET_PLUGIN=r2cc\nexport NCCL_NET=R2CC\n");
  EXPECT_THAT(FormatJobEnv({"mpirun", "", "", "", "/run/r2cc"}),
              AllOf(HasSubstr("mpirun -x NCCL_NET_PLUGIN -x NCCL_NET ..."), HasSubstr("mpirun -genvlist NCCL_NET_PLUGIN,NCCL_NET ...")));
  EXPECT_THAT(FormatJobEnv({"slurm", "", "", "", "/run/r2cc"}),
              AllOf(HasSubstr("R2CC_JOB=slurm-"), HasSubstr("echo \"export NCCL_NET=R2CC\""), HasSubstr("r2ccctl doctor --wait")));
  EXPECT_THAT(FormatJobEnv({"kubernetes", "train", "", "", "/run/r2cc"}),
              AllOf(HasSubstr("- {name: R2CC_JOB, value: \"train\"}"), HasSubstr("mountPath: /run/r2cc, readOnly: true"),
                    HasSubstr("hostPath: {path: /run/r2cc, type: Directory}")));
}

}  // namespace
}  // namespace r2cc::client
