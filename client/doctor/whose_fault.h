// Decides whether a fault between this node and others is this node's. Pure.
#ifndef R2CC_CLIENT_DOCTOR_WHOSE_FAULT_H_
#define R2CC_CLIENT_DOCTOR_WHOSE_FAULT_H_

#include <cstddef>

#include "client/doctor/facts.h"
#include "client/doctor/finding.h"

namespace r2cc::client {

// As CheckPaths, but a failure that only some of the tried peers see is a warning: the fault is theirs. A rail that fails towards every
// tried peer stays a failure, as does a rail of a node with one peer, where the ends cannot be distinguished. A peer's daemon that does not
// accept connections is a failure only if no peer's does, and there are several.
Findings CheckPathsByPeer(const Facts& facts);

// Whether what `apart` of `compared` nodes show is this node's own fault: most of at least two nodes show it.
bool IsOwnFault(size_t apart, size_t compared);

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_DOCTOR_WHOSE_FAULT_H_
