// Prints the tables of the figures: no input, the same output everywhere. With --short it leaves a few cells empty and takes a quarter of
// the time.
#include <cstdio>
#include <string_view>

#include "tests/figures/tables.h"

namespace {

void Print(const char* subject, const std::vector<r2cc::figures::Table>& tables) {
  for (const r2cc::figures::Table& table : tables) std::fputs(table.Text().c_str(), stdout);
  std::fprintf(stderr, "%s done\n", subject);
}

}  // namespace

int main(int argc, char** argv) {
  const bool shortened = argc == 2 && std::string_view(argv[1]) == "--short";
  if (argc > 1 && !shortened) {
    std::fprintf(stderr, "figures_data: takes --short or nothing, not '%s'\n", argv[1]);
    return 2;
  }
  std::fprintf(stderr, "figures_data: %s\n", shortened ? "a quarter of a minute" : "about a minute");
  Print("allreduce", r2cc::figures::AllReduceTables(shortened));
  Print("testbed", r2cc::figures::TestbedTables());
  Print("training", r2cc::figures::TrainingTables());
  Print("failures", r2cc::figures::FailureTables());
  Print("serving", r2cc::figures::ServingTables());
  return 0;
}
