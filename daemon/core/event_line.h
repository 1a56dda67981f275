// An event as a line of the log.
#ifndef R2CC_DAEMON_CORE_EVENT_LINE_H_
#define R2CC_DAEMON_CORE_EVENT_LINE_H_

#include <string>

#include "base/log.h"
#include "proto/r2cc.pb.h"

namespace r2cc::daemon {

// The NIC that it is about first: "n1/rail0: HEALTHY -> FAILED: link down".
std::string EventLine(const v1::Event& event);

// 32 hexadecimal digits, the same for all events of a kind in all releases: MESSAGE_ID of the journal.
std::string EventMessageId(const std::string& kind);

// kWarning for what somebody should look into, such as a NIC that failed; kInfo for all else, such as one that is back.
Severity EventLevel(const v1::Event& event);

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_CORE_EVENT_LINE_H_
