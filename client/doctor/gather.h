// Gathers what the checks of `r2ccctl doctor` judge: from the daemon, and from the machine.
#ifndef R2CC_CLIENT_DOCTOR_GATHER_H_
#define R2CC_CLIENT_DOCTOR_GATHER_H_

#include <cstddef>
#include <string>

#include "client/core/client.h"
#include "client/doctor/facts.h"
#include "client/doctor/machine.h"

namespace r2cc::client {

struct LookOptions {
  std::string run_dir;
  size_t peers_max = 0;  // nodes to which paths are tried
  bool job = false;
};

// The daemon's report, about itself and the others. `now_ns`: CLOCK_REALTIME.
DaemonFacts AskDaemon(Client& client, int64_t now_ns);

// Adds the machine's own facts. `facts.daemon` is there already.
void LookAround(Machine& machine, const LookOptions& options, Facts* facts);

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_DOCTOR_GATHER_H_
