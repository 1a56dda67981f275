#include "tests/sim/mutant_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "bazel/processor_seconds.h"

namespace r2cc::sim {

std::string CheckerOf(const std::vector<std::string>& violations) {
  return violations.empty() ? "" : violations.front().substr(1, violations.front().find(']') - 1);
}

void MutantSearch::ExpectCaught(const std::string& mutant, const std::vector<uint64_t>& searched, const Run& run,
                                const std::vector<std::string>& checkers) {
  const std::vector<uint64_t> seeds = search_ ? searched : pinned_[mutant];
  std::vector<uint64_t> caught;
  size_t others = 0, tried = 0;
  for (const uint64_t seed : seeds) {
    ++tried;
    const std::string wrong = run(seed, true);
    // A sweep reports a seed at which something is wrong anyway; here it proves nothing.
    if (wrong.empty() || !run(seed, false).empty()) continue;
    if (!checkers.empty() && std::find(checkers.begin(), checkers.end(), wrong) == checkers.end()) {
      ++others;
      continue;
    }
    std::printf("%s: seed %llu, the %zuth, %s%s\n", mutant.c_str(), static_cast<unsigned long long>(seed), tried, wrong.c_str(),
                others > 0 ? " (other checkers before)" : "");
    caught.push_back(seed);
    if (caught.size() == (writes() ? kPinnedSeedsMax : 1)) break;
  }
  EXPECT_FALSE(caught.empty()) << mutant << ": none of " << seeds.size() << " seeds is seen by the checker that is there for it; " << others
                               << " by others" << (search_ ? "" : "; after a change of the code pin other seeds: " + refresh_);
  found_[mutant] = caught;
}

int MutantSearch::RunTests(int argc, char** argv) {
  RecordProcessorSeconds();
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--search") {
      search_ = true;
    } else if (argument.starts_with("--write=")) {
      write_path_ = argument.substr(argument.find('=') + 1);
    } else {
      std::fprintf(stderr, "unknown flag %s: there are --search and, with it, --write=FILE\n", argument.c_str());
      return 2;
    }
  }
  std::string error;
  if (search_ || ReadPinnedSeeds(path_, &pinned_, &error)) {
    const int code = RUN_ALL_TESTS();
    if (code != 0 || !search_ || !writes() || WritePinnedSeeds(write_path_, found_, "To refresh: " + refresh_, &error)) return code;
  }
  std::fprintf(stderr, "%s\n", error.c_str());
  return 1;
}

}  // namespace r2cc::sim
