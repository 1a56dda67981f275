// Whether the node's NICs, and the ways from them to other nodes, are as jobs and probes need them. Pure.
#ifndef R2CC_CLIENT_DOCTOR_PATH_CHECKS_H_
#define R2CC_CLIENT_DOCTOR_PATH_CHECKS_H_

#include <map>
#include <string>
#include <vector>

#include "client/doctor/facts.h"
#include "client/doctor/finding.h"

namespace r2cc::client {

// The own NICs: their state by their daemon's word, speed, address, and what the kernel does with packets that come in.
Findings CheckNics(const Facts& facts);

// From each NIC to the peers that were looked at.
Findings CheckPaths(const Facts& facts);

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_DOCTOR_PATH_CHECKS_H_
