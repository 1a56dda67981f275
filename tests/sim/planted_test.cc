// Every bug that netplugin/flow/planted.h can plant is caught within some hundred seeds, by a checker that is there for it, on a seed that
// passes without it.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <ostream>
#include <string>
#include <vector>

#include "netplugin/flow/planted.h"
#include "tests/sim/world.h"

namespace r2cc::sim {
namespace {

using net::Planted;

struct Case {
  Planted bug;
  const char* name;
  std::vector<std::string> checkers;  // any of these may be the first to see it
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

// Of three ranges, as what a range of neighbours happens to miss says little.
constexpr uint64_t kSeeds = 999, kRanges = 3, kRangeBegins = 1'000'000;
constexpr uint64_t SeedOf(uint64_t at) { return 1 + at / (kSeeds / kRanges) * kRangeBegins + at % (kSeeds / kRanges); }

std::string CheckerOf(const std::string& violation) { return violation.substr(1, violation.find(']') - 1); }

class PlantedTest : public testing::TestWithParam<Case> {
 protected:
  ~PlantedTest() override { net::planted = Planted::kNothing; }
};

TEST_P(PlantedTest, IsCaught) {
  const Case& c = GetParam();
  uint64_t others = 0;
  for (uint64_t at = 0; at < kSeeds; ++at) {
    const uint64_t seed = SeedOf(at);
    net::planted = c.bug;
    const Result with = RunSeed(seed, false);
    if (with.violations.empty()) continue;
    net::planted = Planted::kNothing;
    const Result without = RunSeed(seed, false);
    // That is for sweep_test to say; here it proves nothing.
    if (!without.violations.empty()) continue;
    const std::string checker = CheckerOf(with.violations.front());
    if (std::find(c.checkers.begin(), c.checkers.end(), checker) == c.checkers.end()) {
      ++others;
      continue;
    }
    std::printf("%s: seed %llu%s, %s\n", c.name, static_cast<unsigned long long>(seed), others > 0 ? " (other checkers before)" : "",
                with.violations.front().c_str());
    return;
  }
  FAIL() << "none of " << kSeeds << " seeds is seen by the checker that is there for it; " << others << " by others";
}

INSTANTIATE_TEST_SUITE_P(
    All, PlantedTest,
    testing::Values(Case{Planted::kUngranted, "Ungranted", {"granted only", "refused"}},
                    Case{Planted::kGrantDropped, "GrantDropped", {"hang"}}, Case{Planted::kEagerCredit, "EagerCredit", {"refused"}},
                    Case{Planted::kEagerUncopied, "EagerUncopied", {"early release"}},
                    Case{Planted::kEagerFreed, "EagerFreed", {"wrong bytes"}}, Case{Planted::kOffBoundary, "OffBoundary", {"stripe"}},
                    Case{Planted::kZeroForgotten, "ZeroForgotten", {"hang"}},
                    Case{Planted::kDoneWhenSent, "DoneWhenSent", {"end-to-end ack", "early release"}},
                    Case{Planted::kAckBeforePlacement, "AckBeforePlacement", {"ack before placement"}},
                    Case{Planted::kNotToldAgain, "NotToldAgain", {"hang"}}, Case{Planted::kToldOnce, "ToldOnce", {"hang", "false error"}},
                    Case{Planted::kByeLost, "ByeLost", {"hang", "false error"}}, Case{Planted::kEarlyDone, "EarlyDone", {"early done"}},
                    Case{Planted::kDoubleDelivery, "DoubleDelivery", {"exactly once"}},
                    Case{Planted::kLateWrite, "LateWrite", {"late write"}}, Case{Planted::kClaimKept, "ClaimKept", {"refused"}},
                    Case{Planted::kFenceMissing, "FenceMissing", {"fence before replay"}},
                    Case{Planted::kFenceUnfulfilled, "FenceUnfulfilled", {"fence at both ends"}},
                    Case{Planted::kFencedEarly, "FencedEarly", {"fence at both ends", "late write", "exactly once"}},
                    Case{Planted::kCloseNotAwaited, "CloseNotAwaited", {"fence at both ends", "late write"}},
                    Case{Planted::kCloseFailureUnheeded, "CloseFailureUnheeded", {"fence at both ends", "late write"}},
                    Case{Planted::kForgottenEarly, "ForgottenEarly", {"late write"}},
                    Case{Planted::kStaleCompletion, "StaleCompletion", {"wrong bytes", "exactly once"}},
                    Case{Planted::kWorkerUntold, "WorkerUntold", {"hang", "wrong bytes", "late write"}},
                    Case{Planted::kKeyMissing, "KeyMissing", {"key"}}, Case{Planted::kKeyStale, "KeyStale", {"key"}},
                    Case{Planted::kFenceStale, "FenceStale", {"fence at both ends"}},
                    Case{Planted::kFalseFence, "FalseFence", {"false fence"}}, Case{Planted::kFalseError, "FalseError", {"false error"}}),
    [](const testing::TestParamInfo<Case>& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace r2cc::sim
