// Runs `r2ccctl ready`: whether a job may start on this node. Asks only this node's r2ccd, and no network.
#ifndef R2CC_CLIENT_LOCAL_READY_H_
#define R2CC_CLIENT_LOCAL_READY_H_

#include <cstddef>
#include <ostream>
#include <string>

#include "proto/ready.h"

namespace r2cc::client {

struct ReadyCommand {
  std::string socket_path;
  size_t rails_min = 1;
  bool json = false;
  bool npd = false;  // in one line for the node-problem-detector
};

// Asks the daemon, writes one line (or JSON) to `out`, and returns the exit code. Takes less than a second also if the daemon hangs.
int Run(const ReadyCommand& command, std::ostream& out);

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_LOCAL_READY_H_
