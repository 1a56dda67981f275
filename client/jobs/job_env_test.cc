#include "client/jobs/job_env.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace r2cc::client {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// The value of `name` in a shell that has read the lines.
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
    EXPECT_EQ(InShell(lines, "NCCL_NET_PLUGIN_REF_COUNT"), "1");
    EXPECT_EQ(InShell(lines, "R2CC_RAILS"), "eth1,eth2");
    EXPECT_EQ(InShell(lines, "R2CC_JOB"), "it's $HOME");
    EXPECT_EQ(InShell(lines, "LD_LIBRARY_PATH"), "/opt/r2cc lib:/mine");
    EXPECT_EQ(InShell(lines, "R2CC_ATTACH"), "/run/other/attach.sock");
  }
}

TEST(JobEnv, ASeatOnlyWhereItIsAskedFor) {
  for (const std::string& launcher : Launchers()) {
    JobEnvCommand command{launcher, "", "", "/opt/r2cc lib", "/run/r2cc"};
    EXPECT_THAT(FormatJobEnv(command), testing::Not(HasSubstr("LD_PRELOAD")));
    command.seat = true;
    EXPECT_THAT(FormatJobEnv(command),
                AllOf(HasSubstr("LD_PRELOAD"), HasSubstr("libr2cc-nccl.so"), HasSubstr("NCCL_TUNER_PLUGIN"), HasSubstr("R2CC_SEAT")));
  }
  const std::string lines = FormatJobEnv({"torchrun", "", "", "", "/run/r2cc", true});
  EXPECT_EQ(InShell(lines, "NCCL_TUNER_PLUGIN"), "r2cc");
  EXPECT_EQ(InShell(lines, "R2CC_SEAT"), "1");
}

TEST(JobEnv, EachLauncherHasItsOwn) {
  EXPECT_EQ(FormatJobEnv({"torchrun", "", "", "", "/run/r2cc"}),
            "# In the script that each node runs, before torchrun: its workers inherit them.\n"
            "export NCCL_NET_PLUGIN=r2cc\nexport NCCL_NET=R2CC\nexport NCCL_NET_PLUGIN_REF_COUNT=1\n"
            "export R2CC_JOB=${R2CC_JOB:-train}  # the name in `r2ccctl jobs` and `r2ccctl job report`\n"
            "# With torchrun --rdzv_id=ID each run has a report of its own: r2ccctl job report ID\n");
  EXPECT_THAT(FormatJobEnv({"mpirun", "", "", "", "/run/r2cc"}),
              AllOf(HasSubstr("mpirun -x NCCL_NET_PLUGIN -x NCCL_NET -x NCCL_NET_PLUGIN_REF_COUNT ..."),
                    HasSubstr("mpirun -genvlist NCCL_NET_PLUGIN,NCCL_NET,NCCL_NET_PLUGIN_REF_COUNT ...")));
  EXPECT_THAT(FormatJobEnv({"slurm", "", "", "", "/run/r2cc"}),
              AllOf(HasSubstr("R2CC_JOB=slurm-"), HasSubstr("echo \"export NCCL_NET=R2CC\""), testing::Not(HasSubstr("doctor")),
                    HasSubstr("srun --container-mounts=/run/r2cc:/run/r2cc,/usr/lib/"),
                    HasSubstr("--container-env=NCCL_NET_PLUGIN,NCCL_NET,NCCL_NET_PLUGIN_REF_COUNT,R2CC_JOB ...")));
  EXPECT_THAT(FormatJobEnv({"kubernetes", "train", "", "", "/run/r2cc"}),
              AllOf(HasSubstr("- {name: R2CC_JOB, value: \"train\"}"), HasSubstr("mountPath: /run/r2cc, readOnly: true"),
                    HasSubstr("hostPath: {path: /run/r2cc, type: Directory}")));
}

TEST(JobEnv, APodGetsThePluginAndTheNodesNetwork) {
  EXPECT_THAT(FormatJobEnv({"kubernetes", "", "", "", "/run/r2cc"}),
              AllOf(HasSubstr("\n  hostNetwork: true"), HasSubstr("command: [\"/usr/bin/r2cc-setup\", \"plugin\", \"/opt/r2cc\"]"),
                    HasSubstr("- {name: NCCL_NET_PLUGIN, value: \"/opt/r2cc/libnccl-net-r2cc.so\"}"),
                    HasSubstr("- {name: r2cc-plugin, mountPath: /opt/r2cc, readOnly: true}"), HasSubstr("emptyDir: {}"),
                    HasSubstr("\"args\": [\"ready\", \"--min-rails\", \"1\"]")));
  EXPECT_THAT(FormatJobEnv({"kubernetes", "", "", "/image", "/run/r2cc"}),
              AllOf(HasSubstr("value: \"/image\""), testing::Not(HasSubstr("r2cc-setup"))));
}

// The exit code of one of Slurm's lines, if `r2ccctl ready` ends with `code`; and the arguments of scontrol.
int RunSlurmLine(const std::string& beginning, int code, std::string* arguments) {
  const std::string folder = testing::TempDir() + "/slurm";
  std::filesystem::create_directories(folder);
  std::filesystem::remove(folder + "/told");
  std::ofstream(folder + "/r2ccctl") << "#!/bin/sh\necho not ready: no rail\nexit " << code << "\n";
  std::ofstream(folder + "/scontrol") << "#!/bin/sh\necho \"$@\" > " << folder << "/told\n";
  for (const char* program : {"/r2ccctl", "/scontrol"}) std::filesystem::permissions(folder + program, std::filesystem::perms::owner_all);
  std::istringstream lines(FormatJobEnv({"slurm", "", "", "", "/run/r2cc"}));
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("#   " + beginning, 0) != 0) continue;
    std::ofstream(folder + "/script") << line.substr(4) << "\n";
    const int status = std::system(("PATH=" + folder + ":$PATH sh " + folder + "/script > " + folder + "/out").c_str());
    std::ifstream text(folder + "/told");
    std::getline(text, *arguments);
    return WEXITSTATUS(status);
  }
  return -1;
}

TEST(JobEnv, SlurmDrainsANodeThatIsNotReadyAndNoOther) {
  std::string arguments;
  EXPECT_EQ(RunSlurmLine("r2ccctl ready", 0, &arguments), 0);
  EXPECT_EQ(RunSlurmLine("r2ccctl ready", 1, &arguments), 1);
  EXPECT_EQ(RunSlurmLine("r2ccctl ready", 2, &arguments), 0) << "the daemon is away: jobs run without it";
  EXPECT_EQ(RunSlurmLine("why=", 0, &arguments), 0);
  EXPECT_EQ(RunSlurmLine("why=", 2, &arguments), 0);
  EXPECT_EQ(arguments, "");
  EXPECT_EQ(RunSlurmLine("why=", 1, &arguments), 0);
  EXPECT_THAT(arguments, AllOf(HasSubstr("state=drain"), HasSubstr("reason=r2cc: not ready: no rail")));
}

}  // namespace
}  // namespace r2cc::client
