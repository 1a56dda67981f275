// The seeds at which mutants are caught: main() and the loop of the tests of mutants.
//
// By default one of a mutant's pinned seeds has to catch it. `--search`: one of many, and `--write=FILE` pins the first that do.
#ifndef R2CC_TESTS_SIM_MUTANT_SEARCH_H_
#define R2CC_TESTS_SIM_MUTANT_SEARCH_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/sim/pinned_seeds.h"

namespace r2cc::sim {

class MutantSearch {
 public:
  // `target`: the label of the test that searches; `path`: the file of the pinned seeds.
  MutantSearch(const std::string& target, std::string path)
      : path_(std::move(path)), refresh_("./bazelw run " + target + " -- --write=$PWD/" + path_) {}

  // main() of the test, after InitGoogleTest(): takes the flags, runs all tests, and writes what is to be written.
  int RunTests(int argc, char** argv);

  // What is wrong at a seed, with the mutant or without it: the name of a checker, or a line; empty: nothing.
  using Run = std::function<std::string(uint64_t seed, bool with_mutant)>;
  // Expects that one of the mutant's seeds catches it: `run` finds one of `checkers` with it (none are named: anything), and nothing
  // without. `searched` are the seeds of a search.
  void ExpectCaught(const std::string& mutant, const std::vector<uint64_t>& searched, const Run& run,
                    const std::vector<std::string>& checkers = {});

  bool searches() const { return search_; }
  bool writes() const { return !write_path_.empty(); }
  const PinnedSeeds& pinned() const { return pinned_; }
  const std::string& refresh() const { return refresh_; }

 private:
  const std::string path_;
  const std::string refresh_;  // the command that pins others
  bool search_ = false;
  std::string write_path_;  // empty: nothing is written
  PinnedSeeds pinned_;
  PinnedSeeds found_;
};

// "[checker] at 12 us: ..." of tests/sim's violations.
std::string CheckerOf(const std::vector<std::string>& violations);

}  // namespace r2cc::sim

#endif  // R2CC_TESTS_SIM_MUTANT_SEARCH_H_
