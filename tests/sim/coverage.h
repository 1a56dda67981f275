// What a sweep has exercised: rows of the link tables, fault kinds, and situations.
#ifndef R2CC_TESTS_SIM_COVERAGE_H_
#define R2CC_TESTS_SIM_COVERAGE_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "netplugin/link/link_table.h"
#include "tests/sim/faults.h"

namespace r2cc::sim {

struct Coverage {
  std::array<std::array<uint64_t, net::kInitiatorEvents>, net::kInitiatorStates> initiator{};
  std::array<std::array<uint64_t, net::kAcceptorEvents>, net::kAcceptorStates> acceptor{};
  std::array<uint64_t, kFaultKinds> faults{};
  std::array<uint64_t, kSituations> situations{};
  uint64_t messages = 0, fences = 0, replays = 0, errors = 0;

  void Add(const Coverage& other);
  // A table to print.
  std::string Text() const;
  // What should have been hit and was not.
  std::vector<std::string> Missing(Rails rails) const;
};

}  // namespace r2cc::sim

#endif  // R2CC_TESTS_SIM_COVERAGE_H_
