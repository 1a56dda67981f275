// Prints the tables of the figures: no input, the same output everywhere. `figures_data TABLES...` prints some of the groups only.
#include <cstdio>
#include <cstring>
#include <string_view>

#include "tests/figures/tables.h"

namespace {

struct Group {
  const char* name;
  std::vector<r2cc::figures::Table> (*make)();
};

constexpr Group kGroups[] = {{"allreduce", r2cc::figures::AllReduceTables},
                             {"testbed", r2cc::figures::TestbedTables},
                             {"training", r2cc::figures::TrainingTables},
                             {"failures", r2cc::figures::FailureTables},
                             {"serving", r2cc::figures::ServingTables}};

bool Asked(const char* group, int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], group) == 0) return true;
  }
  return argc == 1;
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    bool known = false;
    for (const Group& group : kGroups) known = known || std::string_view(argv[i]) == group.name;
    if (!known) {
      std::fprintf(stderr, "figures_data: no group '%s'; there are allreduce, testbed, training, failures, serving\n", argv[i]);
      return 2;
    }
  }
  for (const Group& group : kGroups) {
    if (!Asked(group.name, argc, argv)) continue;
    std::fprintf(stderr, "%s ...\n", group.name);
    for (const r2cc::figures::Table& table : group.make()) std::fputs(table.Text().c_str(), stdout);
  }
  return 0;
}
