// The shortest list of faults with which a seed still fails.
#ifndef R2CC_TESTS_SIM_SHRINK_H_
#define R2CC_TESTS_SIM_SHRINK_H_

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "tests/sim/scenario.h"

namespace r2cc::sim {

// Those of `scenario.faults` that are needed, by their place: `fails` is true of a scenario with these alone, and false if any one of them
// is left out. It was true of the whole; calls of it are the cost: some for each fault that is needed, and for the others few.
std::vector<size_t> Shrink(const Scenario& scenario, const std::function<bool(const Scenario&)>& fails);

// `scenario` with these of its faults alone.
Scenario WithFaults(Scenario scenario, const std::vector<size_t>& faults);

// "3,7", and back. False: `text` is no such list.
std::string ListText(const std::vector<size_t>& list);
bool ParseList(const std::string& text, std::vector<size_t>* list);

}  // namespace r2cc::sim

#endif  // R2CC_TESTS_SIM_SHRINK_H_
