// Prints the tables of the figures: the same output everywhere. --hit-ms=N: our longest measured stall.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "tests/figures/tables.h"

namespace {

void Print(const char* subject, const std::vector<r2cc::figures::Table>& tables) {
  for (const r2cc::figures::Table& table : tables) std::fputs(table.Text().c_str(), stdout);
  std::fprintf(stderr, "%s done\n", subject);
}

}  // namespace

int main(int argc, char** argv) {
  constexpr char kHit[] = "--hit-ms=";
  double hit_s = 0;
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]).starts_with(kHit)) hit_s = std::strtod(argv[i] + std::strlen(kHit), nullptr) * 1e-3;
  }
  if (hit_s <= 0 || argc > 2) {
    std::fprintf(stderr, "usage: figures_data --hit-ms=MILLISECONDS\n");
    return 2;
  }
  std::fprintf(stderr, "figures_data: about a minute\n");
  Print("allreduce", r2cc::figures::AllReduceTables());
  Print("testbed", r2cc::figures::TestbedTables());
  Print("training", r2cc::figures::TrainingTables());
  Print("failures", r2cc::figures::FailureTables(hit_s));
  Print("serving", r2cc::figures::ServingTables(hit_s));
  return 0;
}
