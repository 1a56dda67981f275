// One command of r2ccctl against a daemon.
#ifndef R2CC_CLIENT_RUN_H_
#define R2CC_CLIENT_RUN_H_

#include <ostream>

#include "absl/status/status.h"
#include "client/arguments.h"
#include "client/client.h"
#include "client/format.h"

namespace r2cc::client {

// Sends the request and writes the reply to `out`. Events are written and flushed one by one.
absl::Status Run(const Invocation& invocation, const Style& style, Client& client, std::ostream& out);

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_RUN_H_
