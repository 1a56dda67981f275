#include "tests/sim/shrink.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <utility>

namespace r2cc::sim {

Scenario WithFaults(Scenario scenario, const std::vector<size_t>& faults) {
  const std::vector<Fault> all = std::exchange(scenario.faults, {});
  for (const size_t fault : faults)
    if (fault < all.size()) scenario.faults.push_back(all[fault]);
  return scenario;
}

// Leaves out runs of faults, the longest first, until none can be left out: Zeller's ddmin without its subsets, which the last round of
// single faults makes unnecessary for lists of a dozen.
std::vector<size_t> Shrink(const Scenario& scenario, const std::function<bool(const Scenario&)>& fails) {
  std::vector<size_t> needed(scenario.faults.size());
  std::iota(needed.begin(), needed.end(), size_t{0});
  for (size_t run = std::max<size_t>(needed.size() / 2, 1); run > 0; run /= 2) {
    for (bool shorter = true; shorter;) {
      shorter = false;
      for (size_t first = 0; first < needed.size();) {
        std::vector<size_t> rest = needed;
        const auto begin = rest.begin() + static_cast<ptrdiff_t>(first);
        rest.erase(begin, begin + static_cast<ptrdiff_t>(std::min(run, rest.size() - first)));
        if (fails(WithFaults(scenario, rest))) {
          needed = std::move(rest);
          shorter = true;
        } else {
          first += run;
        }
      }
    }
  }
  return needed;
}

std::string ListText(const std::vector<size_t>& list) {
  std::string text;
  for (const size_t one : list) text += (text.empty() ? "" : ",") + std::to_string(one);
  return text;
}

bool ParseList(const std::string& text, std::vector<size_t>* list) {
  list->clear();
  for (const char* at = text.c_str(); *at != '\0';) {
    char* end = nullptr;
    list->push_back(std::strtoull(at, &end, 10));
    if (end == at || (*end != ',' && *end != '\0')) return false;
    at = *end == ',' ? end + 1 : end;
  }
  return true;
}

}  // namespace r2cc::sim
