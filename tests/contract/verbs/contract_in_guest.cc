// The contract over RDMA rails of soft-RoCE, through the machine's libibverbs: two processes on the rails of tests/rigs/one_guest.
#include <array>
#include <memory>

#include "tests/contract/fixture.h"
#include "tests/contract/processes/process_world.h"
#include "tests/contract/verbs/local_nodes.h"

namespace r2cc::contract {
namespace {

// An emulated machine moves some 20 MB/s over all of its rails together.
constexpr int64_t kRailBytesPerS = 2'000'000;
// On a busy host it does a tenth of that, and less.
constexpr Nanos kEmulatedPatience = 120 * kSecond;
constexpr int kEmulatedSlack = 8;
// So it is no place for tests that compare rates.
constexpr char kRateTrait[] = "a machine that keeps its rails full";
// It has one processor, and a rail that is silent to others may only be waiting for it.
constexpr Nanos kSilence = 400 * kMs;

// In place of RDMA's: nothing travels eagerly.
class VerbsWorld final : public ProcessWorld {
 public:
  using ProcessWorld::ProcessWorld;
  bool HasEagerMessages() const override { return false; }
};

std::unique_ptr<World> MakeWorld(const Options& options) {
  static LocalNodes* const nodes = new LocalNodes(CablesOfGuest(), "verbs");
  nodes->SetFullFabric(options.full_fabric);
  return std::make_unique<VerbsWorld>(options, nodes);
}

INSTANTIATE_TEST_SUITE_P(Verbs, Contract,
                         testing::Values(Transport{.name = "SoftRoce",
                                                   .missing = [] { return std::string(); },
                                                   .make = MakeWorld,
                                                   .real_time = true,
                                                   .patience = kEmulatedPatience,
                                                   .slack = kEmulatedSlack,
                                                   .rail_bytes_per_s_most = kRailBytesPerS,
                                                   .silence_least = kSilence,
                                                   .lacks = {{"GrayRailIsUsedForWhatItMovesAndNotGivenUp", kRateTrait},
                                                             {"PathsThatTheTwoEndsLostDifferently", kRateTrait}}}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace r2cc::contract
