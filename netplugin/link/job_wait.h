// Describes the requests of a job at one peer, and what they wait for.
#ifndef R2CC_NETPLUGIN_LINK_JOB_WAIT_H_
#define R2CC_NETPLUGIN_LINK_JOB_WAIT_H_

#include <cstdint>
#include <optional>

#include "netplugin/flow/types.h"
#include "plan/page/ring.h"

namespace r2cc::net {

// Of the flows that are open and have not failed.
struct JobRequests {
  uint64_t outstanding = 0;
  uint64_t done = 0;
};

struct JobWait {
  plan::WaitFor what = plan::WaitFor::kUnknown;
  std::optional<LinkId> link;  // with kRail
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_LINK_JOB_WAIT_H_
