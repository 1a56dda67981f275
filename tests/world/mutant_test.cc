// Bugs that span daemon and plugin: in the plugin's source (netplugin/flow/mutant.h), and at the daemon's seams (tests/cluster/bug.h). A
// seed of the one world catches each. See tests/sim/mutant_search.h for the flags.
#include <gtest/gtest.h>
#include <unistd.h>

#include <numeric>
#include <string>
#include <vector>

#include "base/log.h"
#include "netplugin/flow/mutant.h"
#include "tests/cluster/bug.h"
#include "tests/sim/mutant_search.h"
#include "tests/world/scenario.h"

namespace r2cc::world {
namespace {

using cluster::Bug;
using net::Mutant;

// Each is to be found within these.
constexpr uint64_t kSeeds = 1000;

sim::MutantSearch search("//tests/world:mutant_search_test", "tests/world/mutant_seeds.txt");

struct Case {
  const char* name;
  std::vector<std::string> checkers;  // any of these may be the first to see it
  Mutant mutant = Mutant::kNothing;
  Bug bug = Bug::kNothing;
};

class Bugs : public testing::TestWithParam<Case> {
 protected:
  // The path of a socket is short.
  static void SetUpTestSuite() { ASSERT_EQ(chdir(testing::TempDir().c_str()), 0); }
};

TEST_P(Bugs, IsFound) {
  const Case& c = GetParam();
  std::vector<uint64_t> seeds(kSeeds);
  std::iota(seeds.begin(), seeds.end(), 1);
  const auto run = [&](uint64_t seed, bool with_mutant) {
    net::mutant = with_mutant ? c.mutant : Mutant::kNothing;
    cluster::bug = with_mutant ? c.bug : Bug::kNothing;
    const std::string checker = sim::CheckerOf(RunWorld(MakeScenario(seed), seed, false).violations);
    net::mutant = Mutant::kNothing;
    cluster::bug = Bug::kNothing;
    return checker;
  };
  search.ExpectCaught(c.name, seeds, run, c.checkers);
}

INSTANTIATE_TEST_SUITE_P(
    All, Bugs,
    testing::Values(Case{"PageFrozen", {"page misread", "operator's setting", "lost for ever", "hang"}, Mutant::kPageFrozen},
                    Case{"NamesUnheeded", {"page misread", "operator's setting"}, Mutant::kNamesUnheeded},
                    Case{"PeerVerdictUnheeded", {"page misread", "operator's setting"}, Mutant::kPeerVerdictUnheeded},
                    Case{"RepairUnheeded", {"lost for ever", "hang"}, Mutant::kRepairUnheeded},
                    Case{"OwnerUnproved", {"page misread", "operator's setting"}, Mutant::kOwnerUnproved},
                    Case{"ControlIsProgress", {"hang", "lost for ever"}, Mutant::kControlIsProgress},
                    Case{"TornByClose", {"torn by a close"}, Mutant::kTornByClose},
                    Case{"SettingForgotten", {"operator's setting"}, Mutant::kNothing, Bug::kSettingForgotten},
                    Case{"LinkEventLost", {"plan against facts"}, Mutant::kNothing, Bug::kLinkEventLost},
                    Case{"ReportsDecide", {"lost for ever"}, Mutant::kNothing, Bug::kReportsDecide},
                    Case{"SilenceForEver", {"lost for ever"}, Mutant::kNothing, Bug::kSilenceForEver},
                    Case{"FormerTarget", {"former run"}, Mutant::kFormerTarget},
                    Case{"EndUnheard", {"former run"}, Mutant::kNothing, Bug::kEndUnheard},
                    Case{"RunsMixed", {"former run"}, Mutant::kNothing, Bug::kRunsMixed},
                    Case{"RegionKept", {"memory"}, Mutant::kRegionKept},
                    Case{"EvidenceKept", {"memory"}, Mutant::kNothing, Bug::kEvidenceKept}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace r2cc::world

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  r2cc::SetMinSeverity(r2cc::Severity::kError);
  return r2cc::world::search.RunTests(argc, argv);
}
