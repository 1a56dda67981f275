// A link whose queue pair reports nothing, while the peer is awake and something waits for it, is given up in time.
#ifndef R2CC_TESTS_SIM_STALL_WATCH_H_
#define R2CC_TESTS_SIM_STALL_WATCH_H_

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "tests/sim/checkers.h"
#include "tests/sim/process.h"
#include "tests/sim/scenario.h"

namespace r2cc::sim {

class StallWatch {
 public:
  // All outlive it.
  StallWatch(const Scenario* scenario, Network* network, VerbsRails* rails, const std::vector<std::unique_ptr<Process>>* processes,
             Checker* checker)
      : scenario_(scenario), network_(network), rails_(rails), processes_(processes), checker_(checker) {}

  void Judge();

 private:
  bool IsPeerAwake() const;
  const Process& At(int host) const { return *(*processes_)[static_cast<size_t>(host)]; }

  const Scenario* const scenario_;
  Network* const network_;
  VerbsRails* const rails_;
  const std::vector<std::unique_ptr<Process>>* const processes_;
  Checker* const checker_;
  std::map<verbs::QueuePairId, Nanos> since_;
  std::map<std::pair<verbs::QueuePairId, net::LinkId>, net::Incarnation> in_;  // when it was first seen; 0: it had ended
};

}  // namespace r2cc::sim

#endif  // R2CC_TESTS_SIM_STALL_WATCH_H_
