// What a seed of the one world stands for: the job, paths and faults of tests/sim, with a daemon on every node.
#ifndef R2CC_TESTS_WORLD_SCENARIO_H_
#define R2CC_TESTS_WORLD_SCENARIO_H_

#include <cstdint>

#include "tests/sim/world.h"

namespace r2cc::world {

sim::Scenario MakeScenario(uint64_t seed);
// `verbose`: an event log to standard output.
sim::Result RunWorld(const sim::Scenario& scenario, uint64_t seed, bool verbose);

}  // namespace r2cc::world

#endif  // R2CC_TESTS_WORLD_SCENARIO_H_
