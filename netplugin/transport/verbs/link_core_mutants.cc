// Bugs of flow/mutant.h that no seed of the simulation meets often enough: each is seen by the link's own test of it, which passes without.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include "netplugin/flow/mutant.h"

namespace {

using r2cc::net::Mutant;

struct Case {
  Mutant bug;
  const char* test;
};
constexpr Case kCases[] = {
    {Mutant::kErrorIsGone, "LinkCoreFenced.ErrorCodesOfALivingDeviceAreNoProof"},
    {Mutant::kNoOwnReceive, "LinkCoreFenced.AllReceivesAreUsedAndNoKeyIsRevoked"},
    {Mutant::kSameDomain, "LinkCoreFenced.WhatIsRegisteredAgainIsOutOfTheOldOnesReach"},
};

// In a process of its own: what gtest's returns, 1 if the test failed.
int Run(Mutant bug, const char* test) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    r2cc::net::mutant = bug;
    testing::GTEST_FLAG(filter) = test;
    const int failed = RUN_ALL_TESTS();
    std::fflush(nullptr);
    _exit(testing::UnitTest::GetInstance()->test_to_run_count() == 1 ? failed : 2);
  }
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 3;
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  // A child's report would say that this test failed whenever a bug is caught.
  testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
  delete listeners.Release(listeners.default_xml_generator());
  int wrong = 0;
  for (const Case& each : kCases) {
    const int sound = Run(Mutant::kNothing, each.test), with = Run(each.bug, each.test);
    std::printf("%s: without the bug %d, want 0; with it %d, want 1\n", each.test, sound, with);
    wrong += sound != 0 || with != 1;
  }
  return wrong;
}
