// The tables, by subject. What each column means stands in docs/figures/README.md, which page.py writes.
#ifndef R2CC_TESTS_FIGURES_TABLES_H_
#define R2CC_TESTS_FIGURES_TABLES_H_

#include <vector>

#include "tests/figures/table.h"

namespace r2cc::figures {

std::vector<Table> AllReduceTables();
std::vector<Table> TestbedTables();
std::vector<Table> TrainingTables();
// `hit_s`: what our longest measured stall has cost a job, at once.
std::vector<Table> FailureTables(double hit_s);
std::vector<Table> ServingTables(double hit_s);

}  // namespace r2cc::figures

#endif  // R2CC_TESTS_FIGURES_TABLES_H_
