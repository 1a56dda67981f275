// The contract in simulated time: the production sessions over a simulated network. In the second suite the sender places, by keys to
// registered memory.
#include "tests/contract/fixture.h"
#include "tests/contract/sim/sim_world.h"

namespace r2cc::contract {

INSTANTIATE_TEST_SUITE_P(Sim, Contract, testing::Values(SimTransport()), [](const auto& info) { return info.param.name; });
INSTANTIATE_TEST_SUITE_P(SimKeys, Contract, testing::Values(SimKeysTransport()), [](const auto& info) { return info.param.name; });

}  // namespace r2cc::contract
