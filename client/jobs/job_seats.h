// `r2ccctl job seats`: the order of hosts in which a job that starts while NICs are down loses least. Pure.
//
// NCCL numbers nodes in the order of ranks, and its double binary tree gives the first and the last node half of the load. R2CC_SEAT=1 does
// the same for a job that runs; a launcher can do it for one that starts, without another communicator.
#ifndef R2CC_CLIENT_JOBS_JOB_SEATS_H_
#define R2CC_CLIENT_JOBS_JOB_SEATS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/local.pb.h"
#include "proto/r2cc.pb.h"

namespace r2cc::client {

struct JobSeatsCommand {
  std::vector<std::string> hosts;  // nodes in the order in which they would be used; empty: all that r2ccd knows
  size_t gpus = 8;                 // of each
};

// The order of hosts by all nodes' NICs. NotFound names a host that r2ccd does not know, InvalidArgument one that is named twice.
absl::StatusOr<v1::JobSeats> MakeJobSeats(const JobSeatsCommand& command, const v1::ListNicsReply& nics);

// A line a host, as hostfiles have them, below comments that begin with #.
std::string FormatJobSeats(const v1::JobSeats& seats);

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_JOBS_JOB_SEATS_H_
