// One case of the contract in a program of its own, with a bug planted in what it tests.
#ifndef R2CC_TESTS_CONTRACT_PLANTED_RUN_H_
#define R2CC_TESTS_CONTRACT_PLANTED_RUN_H_

#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "netplugin/flow/planted.h"

namespace r2cc::contract {

struct PlantedRun {
  int code = -1;  // the program's exit code: 1 if the case failed; -1 if the program did
  std::string output;
};

// `program`: relative to the test's runfiles. `filter`: Google Test's, of the case.
inline PlantedRun RunPlanted(net::Planted bug, const std::string& program, const std::string& filter) {
  const std::string file = std::string(std::getenv("TEST_TMPDIR")) + "/planted-" + std::to_string(static_cast<int>(bug)) + ".log";
  const std::string command =
      "R2CC_PLANTED=" + std::to_string(static_cast<int>(bug)) + " " + program + " --gtest_filter='" + filter + "' > '" + file + "' 2>&1";
  const int status = std::system(command.c_str());
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text.str()};
}

}  // namespace r2cc::contract

#endif  // R2CC_TESTS_CONTRACT_PLANTED_RUN_H_
