// One seed, run to its end and judged.
#ifndef R2CC_TESTS_SIM_WORLD_H_
#define R2CC_TESTS_SIM_WORLD_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/sim/checkers.h"
#include "tests/sim/coverage.h"
#include "tests/sim/daemons.h"
#include "tests/sim/scenario.h"

namespace r2cc::sim {

struct Result {
  uint64_t seed = 0;
  std::vector<std::string> violations;  // empty: the contract holds
  Coverage coverage;
  Nanos virtual_time = 0;
  uint64_t events = 0;
};

// `verbose`: an event log to standard output.
Result RunSeed(uint64_t seed, bool verbose, Rails rails = Rails::kNetwork);
// Makes the daemons of a world, which outlives them; null: it has none.
using MakeDaemons = std::function<std::unique_ptr<Daemons>(Network* network, Checker* checker, const Scenario& scenario)>;
Result RunScenario(const Scenario& scenario, uint64_t seed, bool verbose, const MakeDaemons& make_daemons = nullptr);

}  // namespace r2cc::sim

#endif  // R2CC_TESTS_SIM_WORLD_H_
