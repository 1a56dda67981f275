// Every mutant of netplugin/flow/mutant.h is caught within some hundred seeds, by a checker that is there for it, on a seed that
// passes without it.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <ostream>
#include <string>
#include <vector>

#include "netplugin/flow/mutant.h"
#include "tests/sim/world.h"

namespace r2cc::sim {
namespace {

using net::Mutant;

struct Case {
  Mutant bug;
  const char* name;
  std::vector<std::string> checkers;  // any of these may be the first to see it
  Rails rails = Rails::kNetwork;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

// Of three ranges, as what a range of neighbours happens to miss says little.
constexpr uint64_t kSeeds = 999, kRanges = 3, kRangeBegins = 1'000'000;
constexpr uint64_t SeedOf(uint64_t at) { return 1 + at / (kSeeds / kRanges) * kRangeBegins + at % (kSeeds / kRanges); }

std::string CheckerOf(const std::string& violation) { return violation.substr(1, violation.find(']') - 1); }

class MutantTest : public testing::TestWithParam<Case> {
 protected:
  ~MutantTest() override { net::mutant = Mutant::kNothing; }
};

TEST_P(MutantTest, IsCaught) {
  const Case& c = GetParam();
  uint64_t others = 0;
  for (uint64_t at = 0; at < kSeeds; ++at) {
    const uint64_t seed = SeedOf(at);
    net::mutant = c.bug;
    const Result with = RunSeed(seed, false, c.rails);
    if (with.violations.empty()) continue;
    net::mutant = Mutant::kNothing;
    const Result without = RunSeed(seed, false, c.rails);
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
    All, MutantTest,
    testing::Values(Case{Mutant::kUngranted, "Ungranted", {"granted only", "refused"}},
                    Case{Mutant::kGrantDropped, "GrantDropped", {"hang"}}, Case{Mutant::kEagerCredit, "EagerCredit", {"refused"}},
                    Case{Mutant::kEagerUncopied, "EagerUncopied", {"early release"}},
                    Case{Mutant::kEagerFreed, "EagerFreed", {"wrong bytes"}}, Case{Mutant::kOffBoundary, "OffBoundary", {"stripe"}},
                    Case{Mutant::kZeroForgotten, "ZeroForgotten", {"hang"}},
                    Case{Mutant::kDoneWhenSent, "DoneWhenSent", {"end-to-end ack", "early release"}},
                    Case{Mutant::kAckBeforePlacement, "AckBeforePlacement", {"ack before placement"}},
                    Case{Mutant::kNotResent, "NotResent", {"hang"}}, Case{Mutant::kSentOnce, "SentOnce", {"hang", "false error"}},
                    Case{Mutant::kByeLost, "ByeLost", {"hang", "false error"}}, Case{Mutant::kEarlyDone, "EarlyDone", {"early done"}},
                    Case{Mutant::kDoubleDelivery, "DoubleDelivery", {"exactly once"}},
                    Case{Mutant::kLateWrite, "LateWrite", {"late write"}}, Case{Mutant::kClaimKept, "ClaimKept", {"refused"}},
                    Case{Mutant::kFenceMissing, "FenceMissing", {"fence before replay"}},
                    Case{Mutant::kFenceUnfulfilled, "FenceUnfulfilled", {"fence at both ends"}},
                    Case{Mutant::kFencedEarly, "FencedEarly", {"fence at both ends", "late write", "exactly once"}},
                    Case{Mutant::kCloseNotAwaited, "CloseNotAwaited", {"fence at both ends", "late write"}},
                    Case{Mutant::kCloseFailureUnheeded, "CloseFailureUnheeded", {"fence at both ends", "late write"}},
                    Case{Mutant::kForgottenEarly, "ForgottenEarly", {"late write"}},
                    Case{Mutant::kStaleCompletion, "StaleCompletion", {"wrong bytes", "exactly once"}},
                    Case{Mutant::kWorkerUnreported, "WorkerUnreported", {"hang", "wrong bytes", "late write"}},
                    Case{Mutant::kKeyMissing, "KeyMissing", {"key"}}, Case{Mutant::kKeyStale, "KeyStale", {"key"}},
                    Case{Mutant::kFenceStale, "FenceStale", {"fence at both ends"}},
                    Case{Mutant::kFalseFence, "FalseFence", {"false fence"}}, Case{Mutant::kFalseError, "FalseError", {"false error"}},
                    Case{Mutant::kControlIsProgress, "ControlIsProgress", {"hang"}},
                    Case{Mutant::kClosedWindowIsSilence, "ClosedWindowIsSilence", {"false fence"}}),
    [](const testing::TestParamInfo<Case>& info) { return std::string(info.param.name); });

// Over the shipped verbs links, each incarnation of which has a completion queue of its own: there is no stale completion. Sizes,
// boundaries and the order of a message's chunks are those of any transport.
constexpr Rails kVerbs = Rails::kVerbs;
INSTANTIATE_TEST_SUITE_P(
    Verbs, MutantTest,
    testing::Values(Case{Mutant::kFenceSkipped, "FenceSkipped", {"late write", "exactly once"}, kVerbs},
                    Case{Mutant::kTicketReused, "TicketReused", {"exactly once", "stripe", "refused", "wrong bytes", "early done"}, kVerbs},
                    Case{Mutant::kSuccessorTheSame, "SuccessorTheSame", {"successor"}, kVerbs},
                    Case{Mutant::kFencedEarly, "FencedEarly", {"fence at both ends", "late write", "exactly once"}, kVerbs},
                    Case{Mutant::kCloseNotAwaited, "CloseNotAwaited", {"fence at both ends", "late write"}, kVerbs},
                    Case{Mutant::kCloseFailureUnheeded, "CloseFailureUnheeded", {"fence at both ends", "late write"}, kVerbs},
                    Case{Mutant::kFenceMissing, "FenceMissing", {"fence before replay"}, kVerbs},
                    Case{Mutant::kFenceUnfulfilled, "FenceUnfulfilled", {"fence at both ends"}, kVerbs},
                    Case{Mutant::kFenceStale, "FenceStale", {"fence at both ends"}, kVerbs},
                    Case{Mutant::kForgottenEarly, "ForgottenEarly", {"late write"}, kVerbs},
                    Case{Mutant::kKeyMissing, "KeyMissing", {"key", "hang"}, kVerbs},
                    Case{Mutant::kKeyStale, "KeyStale", {"key", "hang", "false fence", "false error"}, kVerbs},
                    Case{Mutant::kUngranted, "Ungranted", {"granted only", "key", "refused"}, kVerbs},
                    Case{Mutant::kGrantDropped, "GrantDropped", {"hang"}, kVerbs}, Case{Mutant::kNotResent, "NotResent", {"hang"}, kVerbs}),
    [](const testing::TestParamInfo<Case>& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace r2cc::sim
