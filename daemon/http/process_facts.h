// What the kernel says of this process.
#ifndef R2CC_DAEMON_HTTP_PROCESS_FACTS_H_
#define R2CC_DAEMON_HTTP_PROCESS_FACTS_H_

#include "daemon/metrics/facts.h"

namespace r2cc::daemon {

// 0 where it does not say.
ProcessFacts ReadProcessFacts();

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_HTTP_PROCESS_FACTS_H_
