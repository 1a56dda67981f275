// Finds which run of a job this process belongs to, and its rank, from the variables that launchers set. Pure.
#ifndef R2CC_NETPLUGIN_CONFIG_RUN_ID_H_
#define R2CC_NETPLUGIN_CONFIG_RUN_ID_H_

#include <cstdint>
#include <optional>
#include <string>

#include "netplugin/config/config.h"

namespace r2cc::net {

struct RunId {
  std::string id;       // at most 63 printable characters without blanks; empty: no launcher sets it
  bool shared = false;  // all processes of the run have the same one; false: a pod's
  std::optional<uint32_t> rank;
};

// The first of: SLURM_JOB_ID with the step and the restart, TORCHELASTIC_RUN_ID with the restart, PMIX_NAMESPACE (Open MPI), POD_UID.
RunId RunOf(const GetEnv& get);

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_CONFIG_RUN_ID_H_
