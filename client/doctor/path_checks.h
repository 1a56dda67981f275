// Checks whether the node's NICs, and the paths from them to other nodes, fit jobs and probes. Pure.
#ifndef R2CC_CLIENT_DOCTOR_PATH_CHECKS_H_
#define R2CC_CLIENT_DOCTOR_PATH_CHECKS_H_

#include <map>
#include <string>
#include <vector>

#include "client/doctor/facts.h"
#include "client/doctor/finding.h"

namespace r2cc::client {

// The own NICs: their state as their daemon reports it, speed, address, and how the kernel treats incoming packets.
Findings CheckNics(const Facts& facts);

// From each NIC to the peers that were looked at.
Findings CheckPaths(const Facts& facts);

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_DOCTOR_PATH_CHECKS_H_
