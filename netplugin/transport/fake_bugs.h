// Runs a program's own tests again, each with one bug of flow/mutant.h switched on that the test must detect: bugs that no seed of the
// simulation meets often enough.
#ifndef R2CC_NETPLUGIN_TRANSPORT_FAKE_BUGS_H_
#define R2CC_NETPLUGIN_TRANSPORT_FAKE_BUGS_H_

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <span>

#include "netplugin/flow/mutant.h"

namespace r2cc::net {

struct BugCase {
  Mutant bug;
  const char* test;
};

// Runs it in a process of its own. Returns gtest's result, 1 if the test failed; 3 if the process ended otherwise.
inline int RunWithBug(Mutant bug, const char* test) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    mutant = bug;
    testing::GTEST_FLAG(filter) = test;
    const int failed = RUN_ALL_TESTS();
    std::fflush(nullptr);
    _exit(testing::UnitTest::GetInstance()->test_to_run_count() == 1 ? failed : 2);
  }
  int status = 0;
  const bool exited = waitpid(child, &status, 0) == child && WIFEXITED(status);
  // A sanitizer that stops the process has an exit code of its own.
  return exited && WEXITSTATUS(status) < 3 ? WEXITSTATUS(status) : 3;
}

// For main(): returns how many cases did not pass without the bug, or did not fail with it.
inline int RunBugCases(int argc, char** argv, std::span<const BugCase> cases) {
  testing::InitGoogleTest(&argc, argv);
  // A child's report would state that this test failed whenever a bug is detected.
  testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
  delete listeners.Release(listeners.default_xml_generator());
  int wrong = 0;
  for (const BugCase& each : cases) {
    const int sound = RunWithBug(Mutant::kNothing, each.test), with = RunWithBug(each.bug, each.test);
    std::printf("%s: without the bug %d, want 0; with it %d, want 1 or 3\n", each.test, sound, with);
    wrong += sound != 0 || (with != 1 && with != 3);
  }
  return wrong;
}

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_FAKE_BUGS_H_
