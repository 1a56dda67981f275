#include "netplugin/config/run_id.h"

#include <cstdlib>

namespace r2cc::net {
namespace {

constexpr size_t kIdCharsMax = 63;  // a field of 64 bytes in the ring

std::string Text(const GetEnv& get, const char* name) {
  const char* const value = get(name);
  return value == nullptr ? "" : value;
}

// In characters that a table and a pattern can hold.
std::string Clean(std::string text) {
  text.resize(std::min(text.size(), kIdCharsMax));
  for (char& c : text)
    if (c <= 0x20 || c >= 0x7f || c == '*' || c == '?') c = '_';
  return text;
}

std::string WithRestarts(const std::string& id, const std::string& restarts) {
  return restarts.empty() || restarts == "0" ? id : id + "-r" + restarts;
}

std::optional<uint32_t> Number(const std::string& text) {
  if (text.empty() || text.size() > 9 || text.find_first_not_of("0123456789") != std::string::npos) return std::nullopt;
  return static_cast<uint32_t>(std::strtoul(text.c_str(), nullptr, 10));
}

}  // namespace

RunId RunOf(const GetEnv& get) {
  RunId run;
  for (const char* const name : {"RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"})
    if (!run.rank.has_value()) run.rank = Number(Text(get, name));
  run.shared = true;
  if (const std::string slurm = Text(get, "SLURM_JOB_ID"); !slurm.empty()) {
    const std::string step = Text(get, "SLURM_STEP_ID");
    run.id = Clean(WithRestarts(step.empty() ? slurm : slurm + "." + step, Text(get, "SLURM_RESTART_COUNT")));
    return run;
  }
  // torchrun without --rdzv_id calls each run "none".
  if (const std::string torch = Text(get, "TORCHELASTIC_RUN_ID"); !torch.empty() && torch != "none") {
    run.id = Clean(WithRestarts(torch, Text(get, "TORCHELASTIC_RESTART_COUNT")));
    return run;
  }
  if (const std::string mpi = Text(get, "PMIX_NAMESPACE"); !mpi.empty()) {
    run.id = Clean(mpi);
    return run;
  }
  run.shared = false;
  run.id = Clean(Text(get, "POD_UID"));
  return run;
}

}  // namespace r2cc::net
