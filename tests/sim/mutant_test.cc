// Every mutant of netplugin/flow/mutant.h is caught by a checker that is there for it, on a seed that passes without it: see
// mutant_search.h for the flags.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "netplugin/flow/mutant.h"
#include "tests/sim/mutant_search.h"
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
constexpr uint64_t kSeeds = 5997, kRanges = 3, kRangeBegins = 1'000'000;
constexpr uint64_t SeedOf(uint64_t at) { return 1 + at / (kSeeds / kRanges) * kRangeBegins + at % (kSeeds / kRanges); }

MutantSearch search("//tests/sim:mutant_search_test", "tests/sim/mutant_seeds.txt");

class MutantTest : public testing::TestWithParam<Case> {
 protected:
  ~MutantTest() override { net::mutant = Mutant::kNothing; }

  // As the seeds' file has it: "Verbs/FencedEarly".
  static std::string Name() {
    const std::string suite = testing::UnitTest::GetInstance()->current_test_info()->test_suite_name();
    return suite.substr(0, suite.find('/') + 1) + GetParam().name;
  }
};

TEST_P(MutantTest, IsCaught) {
  const Case& c = GetParam();
  std::vector<uint64_t> seeds;
  for (uint64_t at = 0; at < kSeeds; ++at) seeds.push_back(SeedOf(at));
  const auto run = [&](uint64_t seed, bool with_mutant) {
    net::mutant = with_mutant ? c.bug : Mutant::kNothing;
    return CheckerOf(RunSeed(seed, false, c.rails).violations);
  };
  search.ExpectCaught(Name(), seeds, run, c.checkers);
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
  for (const auto& [name, seeds] : search.pinned()) {
    bool known = false;
    const testing::UnitTest& all = *testing::UnitTest::GetInstance();
    for (int i = 0; i < all.total_test_suite_count(); ++i)
      for (int j = 0; j < all.GetTestSuite(i)->total_test_count(); ++j) {
        const std::string suite = all.GetTestSuite(i)->name(), test = all.GetTestSuite(i)->GetTestInfo(j)->name();
        known = known || suite.substr(0, suite.find('/')) + test.substr(std::min(test.find('/'), test.size())) == name;
      }
    EXPECT_TRUE(known) << name << " is no mutant; " << search.refresh();
  }
}

}  // namespace
}  // namespace r2cc::sim

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  return r2cc::sim::search.RunTests(argc, argv);
}
