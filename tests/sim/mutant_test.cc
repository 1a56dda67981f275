// Every mutant of netplugin/flow/mutant.h is caught by a checker that is there for it, on a seed that passes without it. By default one of
// the mutant's seeds in mutant_seeds.txt has to catch it; with --search one of some hundred seeds, and --write=FILE pins the first that do.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <ostream>
#include <string>
#include <vector>

#include "bazel/processor_seconds.h"
#include "netplugin/flow/mutant.h"
#include "tests/sim/pinned_seeds.h"
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

constexpr char kPinnedPath[] = "tests/sim/mutant_seeds.txt";
constexpr char kRefresh[] = "./bazelw run //tests/sim:mutant_search_test -- --write=$PWD/tests/sim/mutant_seeds.txt";

bool search = false;
std::string write_path;  // empty: nothing is written
PinnedSeeds found;       // by --search

std::string CheckerOf(const std::string& violation) { return violation.substr(1, violation.find(']') - 1); }

class MutantTest : public testing::TestWithParam<Case> {
 protected:
  static void SetUpTestSuite() {
    std::string error;
    if (search || !pinned_.empty()) return;
    ASSERT_TRUE(ReadPinnedSeeds(kPinnedPath, &pinned_, &error)) << error;
  }
  ~MutantTest() override { net::mutant = Mutant::kNothing; }

  // As the seeds' file has it: "Verbs/FencedEarly".
  static std::string Name() {
    const std::string suite = testing::UnitTest::GetInstance()->current_test_info()->test_suite_name();
    return suite.substr(0, suite.find('/') + 1) + GetParam().name;
  }

  static std::vector<uint64_t> Seeds() {
    if (!search) return pinned_[Name()];
    std::vector<uint64_t> seeds;
    for (uint64_t at = 0; at < kSeeds; ++at) seeds.push_back(SeedOf(at));
    return seeds;
  }

  static inline PinnedSeeds pinned_;
};

TEST_P(MutantTest, IsCaught) {
  const Case& c = GetParam();
  const std::vector<uint64_t> seeds = Seeds();
  const size_t wanted = write_path.empty() ? 1 : kPinnedSeedsMax;
  std::vector<uint64_t> caught;
  uint64_t others = 0;
  for (const uint64_t seed : seeds) {
    net::mutant = c.bug;
    const Result with = RunSeed(seed, false, c.rails);
    if (with.violations.empty()) continue;
    net::mutant = Mutant::kNothing;
    const Result without = RunSeed(seed, false, c.rails);
    // sweep_test reports such a seed; here it proves nothing.
    if (!without.violations.empty()) continue;
    const std::string checker = CheckerOf(with.violations.front());
    if (std::find(c.checkers.begin(), c.checkers.end(), checker) == c.checkers.end()) {
      ++others;
      continue;
    }
    std::printf("%s: seed %llu%s, %s\n", c.name, static_cast<unsigned long long>(seed), others > 0 ? " (other checkers before)" : "",
                with.violations.front().c_str());
    caught.push_back(seed);
    if (caught.size() == wanted) break;
  }
  if (caught.empty())
    FAIL() << "none of " << seeds.size() << " seeds is seen by the checker that is there for it; " << others << " by others"
           << (search ? "" : std::string("; after a change of the code pin other seeds: ") + kRefresh);
  found[Name()] = caught;
}

INSTANTIATE_TEST_SUITE_P(
    All, MutantTest,
    testing::Values(
        Case{Mutant::kUngranted, "Ungranted", {"granted only", "refused"}}, Case{Mutant::kGrantDropped, "GrantDropped", {"hang"}},
        Case{Mutant::kEagerCredit, "EagerCredit", {"refused"}}, Case{Mutant::kEagerUncopied, "EagerUncopied", {"early release"}},
        Case{Mutant::kEagerFreed, "EagerFreed", {"wrong bytes"}}, Case{Mutant::kOffBoundary, "OffBoundary", {"stripe"}},
        Case{Mutant::kZeroForgotten, "ZeroForgotten", {"hang"}},
        Case{Mutant::kDoneWhenSent, "DoneWhenSent", {"end-to-end ack", "early release"}},
        Case{Mutant::kAckBeforePlacement, "AckBeforePlacement", {"ack before placement"}}, Case{Mutant::kNotResent, "NotResent", {"hang"}},
        Case{Mutant::kSentOnce, "SentOnce", {"hang", "false error"}}, Case{Mutant::kByeLost, "ByeLost", {"hang", "false error"}},
        Case{Mutant::kEarlyDone, "EarlyDone", {"early done"}}, Case{Mutant::kDoubleDelivery, "DoubleDelivery", {"exactly once"}},
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
        Case{Mutant::kFenceStale, "FenceStale", {"fence at both ends"}}, Case{Mutant::kFalseFence, "FalseFence", {"false fence"}},
        Case{Mutant::kFalseError, "FalseError", {"false error"}}, Case{Mutant::kControlIsProgress, "ControlIsProgress", {"hang"}},
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
                    Case{Mutant::kErrorIsGone, "ErrorIsGone", {"late write", "exactly once"}, kVerbs},
                    Case{Mutant::kNoOwnReceive, "NoOwnReceive", {"keys revoked"}, kVerbs},
                    Case{Mutant::kTornByClose, "TornByClose", {"torn by a close"}, kVerbs},
                    Case{Mutant::kOthersProgress, "OthersProgress", {"stalled"}, kVerbs},
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

// A line that no mutant has would hide that its mutant is gone.
TEST(MutantSeeds, AreOfMutants) {
  if (!write_path.empty()) return;  // about to be replaced
  PinnedSeeds pinned;
  std::string error;
  ASSERT_TRUE(ReadPinnedSeeds(kPinnedPath, &pinned, &error)) << error;
  for (const auto& [name, seeds] : pinned) {
    bool known = false;
    const testing::UnitTest& all = *testing::UnitTest::GetInstance();
    for (int i = 0; i < all.total_test_suite_count(); ++i)
      for (int j = 0; j < all.GetTestSuite(i)->total_test_count(); ++j) {
        const std::string suite = all.GetTestSuite(i)->name(), test = all.GetTestSuite(i)->GetTestInfo(j)->name();
        known = known || suite.substr(0, suite.find('/')) + test.substr(std::min(test.find('/'), test.size())) == name;
      }
    EXPECT_TRUE(known) << name << " is no mutant; " << kRefresh;
  }
}

}  // namespace
}  // namespace r2cc::sim

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  r2cc::RecordProcessorSeconds();
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--search") {
      r2cc::sim::search = true;
    } else if (argument.rfind("--write=", 0) == 0) {
      r2cc::sim::write_path = argument.substr(argument.find('=') + 1);
    } else {
      std::fprintf(stderr, "unknown flag %s: there are --search and, with it, --write=FILE\n", argument.c_str());
      return 2;
    }
  }
  const int code = RUN_ALL_TESTS();
  std::string error;
  if (code != 0 || !r2cc::sim::search || r2cc::sim::write_path.empty()) return code;
  if (r2cc::sim::WritePinnedSeeds(r2cc::sim::write_path, r2cc::sim::found, std::string("To refresh: ") + r2cc::sim::kRefresh, &error))
    return 0;
  std::fprintf(stderr, "%s\n", error.c_str());
  return 1;
}
