// One command of r2ccctl.
#ifndef R2CC_CLIENT_RUN_H_
#define R2CC_CLIENT_RUN_H_

#include <cstdint>
#include <functional>
#include <ostream>
#include <utility>

#include "absl/status/status.h"
#include "client/arguments.h"
#include "client/core/client.h"
#include "client/format/format.h"

namespace r2cc::client {

// The interface of `watch` to the terminal.
struct Terminal {
  std::function<int64_t()> now_ns;             // CLOCK_REALTIME
  std::function<bool(int milliseconds)> wait;  // false: the person has seen enough
  bool is_one = false;
  std::function<std::pair<size_t, size_t>()> size = [] { return std::pair<size_t, size_t>(); };  // columns and rows; 0: no limit
};

// Sends the request and writes the reply to `out`. Events are written and flushed one by one.
absl::Status Run(const Invocation& invocation, const Style& style, Client& client, std::ostream& out, const Terminal& terminal);

// Answers and plots `plan simulate`; asks no daemon.
absl::Status Run(const Simulation& simulation, const Style& style, std::ostream& out);

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_RUN_H_
