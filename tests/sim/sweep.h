// Many seeds of a simulated world, on all processors: main() and the loop of the sweeps of tests/sim and tests/world.
//
// `--seeds=N` runs seeds 1 to N (`--first=S`: from S on, `--fresh`: from a seed on that the time chooses), `--seed=S` one of them, with
// `--verbose` and its event log, and with `--faults=LIST` with these of its faults alone. A failure is shrunk to the faults that it needs,
// and prints the command that replays it.
#ifndef R2CC_TESTS_SIM_SWEEP_H_
#define R2CC_TESTS_SIM_SWEEP_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/sim/world.h"

namespace r2cc::sim {

class Sweep {
 public:
  struct World {
    std::string target;  // that runs these seeds
    std::function<Scenario(uint64_t seed)> make;
    std::function<Result(const Scenario& scenario, uint64_t seed, bool verbose)> run;
  };
  explicit Sweep(World world) : world_(std::move(world)) {}

  // False: it is none of the flags above.
  bool TakeFlag(const std::string& flag);
  uint64_t first() const { return first_; }
  uint64_t seeds() const { return seeds_; }
  // Only one is to be run.
  bool is_one() const { return seed_ != 0; }

  // A broken invariant ends the process: the seed is told before.
  void AnnounceAborts();
  Result Run(uint64_t seed, bool verbose = false) const;
  // Runs the one seed, or all; those that fail are failures of the test. What they covered.
  Coverage RunAll();
  // Its faults, violations and replay, for a failure.
  std::string Describe(const Result& result) const;

 private:
  std::string Replay(uint64_t seed) const;
  void RunOne();

  const World world_;
  uint64_t first_ = 1;
  uint64_t seeds_ = 2000;
  uint64_t seed_ = 0;  // 0: all of these
  bool fresh_ = false;
  bool verbose_ = false;
  std::optional<std::vector<size_t>> faults_;
};

}  // namespace r2cc::sim

#endif  // R2CC_TESTS_SIM_SWEEP_H_
