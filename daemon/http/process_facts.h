// Reads the facts of the kernel about this process.
#ifndef R2CC_DAEMON_HTTP_PROCESS_FACTS_H_
#define R2CC_DAEMON_HTTP_PROCESS_FACTS_H_

#include "daemon/metrics/facts.h"

namespace r2cc::daemon {

// 0: the kernel does not show it.
ProcessFacts ReadProcessFacts();

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_HTTP_PROCESS_FACTS_H_
