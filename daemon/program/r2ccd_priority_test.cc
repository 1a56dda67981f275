// The priority that r2ccd gives itself, read back from the kernel for each of its threads.
#include <errno.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <set>
#include <string>

#include "daemon/program/r2ccd_rig.h"

namespace r2cc::daemon {
namespace {

constexpr int kNiceLeast = -20;

int NiceOf(pid_t thread) { return getpriority(PRIO_PROCESS, static_cast<id_t>(thread)); }

// The rights of a child of this process over itself, as the daemon is one.
bool ChildMay(const std::function<bool()>& action) {
  const pid_t child = fork();
  if (child == 0) _exit(action() ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool MayBeRealtime(int priority) {
  return ChildMay([priority] {
    const sched_param realtime{.sched_priority = priority};
    return sched_setscheduler(0, SCHED_RR, &realtime) == 0;
  });
}

bool MayBeNice(int nice) {
  return ChildMay([nice] { return setpriority(PRIO_PROCESS, 0, nice) == 0; });
}

class R2ccdPriorityTest : public R2ccdTest {
 protected:
  // The core's thread, which is the process's first, runs with `policy` and `priority` (real-time), all others at `nice` alone.
  void ExpectAll(int policy, int priority, int nice) {
    std::set<std::string> names;
    const pid_t core = daemons_[0]->pid();
    for (const auto& entry : std::filesystem::directory_iterator("/proc/" + std::to_string(core) + "/task")) {
      const pid_t thread = std::stoi(entry.path().filename());
      std::string name = ReadFile(entry.path() / "comm");
      sched_param parameters{};
      const int its_policy = sched_getscheduler(thread) & ~SCHED_RESET_ON_FORK;
      if (sched_getparam(thread, &parameters) != 0) continue;  // gRPC ends some of its threads when it likes
      EXPECT_EQ(its_policy, thread == core ? policy : SCHED_OTHER) << name;
      EXPECT_EQ(parameters.sched_priority, thread == core ? priority : 0) << name;
      if (its_policy == SCHED_OTHER) {
        EXPECT_EQ(NiceOf(thread), nice) << name;
      }
      names.insert(name.substr(0, name.find('\n')));
    }
    for (const char* loop : {"r2ccd", "r2ccd-disk", "r2ccd-guard", "r2ccd-listen"}) EXPECT_TRUE(names.contains(loop)) << loop;
  }
};

TEST_F(R2ccdPriorityTest, TheCoreHasTheLowestRealtimePriorityAndAllOthersAreNice) {
  const bool realtime = MayBeRealtime(1);
  if (!MayBeNice(kNiceLeast)) GTEST_SKIP() << "needs CAP_SYS_NICE: nice -20 cannot be had";
  StartDaemon(0);
  ExpectAll(realtime ? SCHED_RR : SCHED_OTHER, realtime ? 1 : 0, kNiceLeast);
  EXPECT_EQ(daemons_[0]->log().find("no real-time priority") == std::string::npos, realtime) << daemons_[0]->log();
}

TEST_F(R2ccdPriorityTest, AnotherRealtimePriorityIsTaken) {
  if (!MayBeRealtime(3)) GTEST_SKIP() << "needs CAP_SYS_NICE: no real-time priority can be had";
  WriteConfig(0, "realtime_priority: 3\n");
  StartDaemon(0);
  ExpectAll(SCHED_RR, 3, MayBeNice(kNiceLeast) ? kNiceLeast : NiceOf(0));
}

TEST_F(R2ccdPriorityTest, WithoutOneNiceAloneIsSet) {
  const int wanted = std::min(NiceOf(0) + 3, 19);  // more is always allowed
  WriteConfig(0, "realtime_priority: 0\nnice: " + std::to_string(wanted) + "\n");
  StartDaemon(0);
  ExpectAll(SCHED_OTHER, 0, wanted);
  EXPECT_EQ(daemons_[0]->log().find("real-time"), std::string::npos) << daemons_[0]->log();
}

TEST_F(R2ccdPriorityTest, BothCanBeLeftAlone) {
  WriteConfig(0, "realtime_priority: 0\nnice: " + std::to_string(NiceOf(0)) + "\n");
  StartDaemon(0);
  ExpectAll(SCHED_OTHER, 0, NiceOf(0));
}

}  // namespace
}  // namespace r2cc::daemon
