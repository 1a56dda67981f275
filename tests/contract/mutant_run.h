// One case of the contract in a program of its own, with a mutant switched on in what it tests.
#ifndef R2CC_TESTS_CONTRACT_MUTANT_RUN_H_
#define R2CC_TESTS_CONTRACT_MUTANT_RUN_H_

#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "netplugin/flow/mutant.h"

namespace r2cc::contract {

struct MutantRun {
  int code = -1;  // the program's exit code: 1 if the case failed; -1 if the program did
  std::string output;
};

// `program`: relative to the test's runfiles. `filter`: Google Test's, of the case.
inline MutantRun RunMutant(net::Mutant bug, const std::string& program, const std::string& filter) {
  const std::string file = std::string(std::getenv("TEST_TMPDIR")) + "/mutant-" + std::to_string(static_cast<int>(bug)) + ".log";
  const std::string command =
      "R2CC_MUTANT=" + std::to_string(static_cast<int>(bug)) + " " + program + " --gtest_filter='" + filter + "' > '" + file + "' 2>&1";
  const int status = std::system(command.c_str());
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text.str()};
}

}  // namespace r2cc::contract

#endif  // R2CC_TESTS_CONTRACT_MUTANT_RUN_H_
