#include "tools/perf/launched_rank.h"

#include <charconv>
#include <string_view>

#include "tools/perf/pattern.h"

namespace r2cc::perf {
namespace {

struct Launcher {
  const char* name;
  const char* rank;
  const char* ranks;
};

// From the inner ones to Slurm, in whose jobs the others run. The ranks of a step of Slurm, not of the job: a batch script has the rank 0
// in its environment too, and is no rank.
constexpr Launcher kLaunchers[] = {
    {"torchrun", "RANK", "WORLD_SIZE"},
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"MPICH", "PMI_RANK", "PMI_SIZE"},
    {"Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"},
};

std::optional<int> ParseNumber(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

}  // namespace

Status FindLaunchedRank(const Environment& environment, std::optional<LaunchedRank>* found) {
  found->reset();
  for (const Launcher& launcher : kLaunchers) {
    const char* const rank_text = environment(launcher.rank);
    const char* const ranks_text = environment(launcher.ranks);
    if (rank_text == nullptr || ranks_text == nullptr) continue;
    const std::optional<int> rank = ParseNumber(rank_text), ranks = ParseNumber(ranks_text);
    const std::string prefix =
        std::string(launcher.name) + " has " + launcher.rank + "='" + rank_text + "', " + launcher.ranks + "='" + ranks_text + "': ";
    if (!rank || !ranks || *rank >= *ranks) return Status::Error(prefix + "that is no rank of a job; give --rank, --nranks and --root");
    if (*ranks < 2 || *ranks > kRanksMax)
      return Status::Error(prefix + "a job here has 2 to " + std::to_string(kRanksMax) + " ranks; --ranks N starts them all here");
    LaunchedRank launched{launcher.name, *rank, *ranks, ""};
    const char* const address = environment("MASTER_ADDR");
    const char* const port = environment("MASTER_PORT");
    if (address != nullptr && port != nullptr) launched.root = std::string(address) + ":" + port;
    *found = launched;
    return {};
  }
  return {};
}

}  // namespace r2cc::perf
