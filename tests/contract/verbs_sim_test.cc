// The contract over verbs rails in simulated time: the shipped links over the fake fabric. Once more where packets of plain writes come out
// of order and each chunk has a tail record (adaptive routing), and once on soft-RoCE's driver, whose RESET is no fence.
#include "tests/contract/fixture.h"
#include "tests/contract/sim/sim_world.h"
#include "tests/sim/verbs_rails.h"

namespace r2cc::contract {
namespace {

namespace verbs = net::verbs;
using sim::VerbsRailsOptions;

// One packet in so many takes long to be placed: a fence that does not wait for it is found out.
constexpr verbs::FakeOptions kFabric{.placement_late_one_in = 200, .placement_late_most = 5 * kNanosPerMs};

std::unique_ptr<World> MakeOf(const Options& options, const VerbsRailsOptions& rails) {
  const auto made = std::make_shared<std::weak_ptr<sim::VerbsRails>>();
  auto world = std::make_unique<SimWorld>(options, true, sim::MakeVerbsRails(rails, made.get()), false);
  world->stall = [made](sim::Port from, sim::Port to, bool sends) { made->lock()->StallPairs(from, to, sends ? 1 : 0); };
  return world;
}
std::unique_ptr<World> MakePlain(const Options& options) { return MakeOf(options, {.fabric = kFabric}); }
std::unique_ptr<World> MakeAdaptive(const Options& options) {
  VerbsRailsOptions rails{.fabric = kFabric, .adaptive_routing = true};
  rails.fabric.reorder = true;
  return MakeOf(options, rails);
}
std::unique_ptr<World> MakeSoftRoce(const Options& options) { return MakeOf(options, {.fabric = kFabric, .driver = "rdma_rxe"}); }

std::string Nothing() { return ""; }

INSTANTIATE_TEST_SUITE_P(VerbsSim, Contract,
                         testing::Values(Transport{"Plain", Nothing, MakePlain}, Transport{"Adaptive", Nothing, MakeAdaptive},
                                         Transport{"SoftRoce", Nothing, MakeSoftRoce}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace r2cc::contract
