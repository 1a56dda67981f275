// `r2ccctl watch`: the cluster's NICs and the last events, again and again.
#ifndef R2CC_CLIENT_WATCH_H_
#define R2CC_CLIENT_WATCH_H_

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "client/core/client.h"
#include "client/format/format.h"

namespace r2cc::client {

struct WatchWorld {
  std::function<int64_t()> now_ns;  // CLOCK_REALTIME
  // Waits until the next picture is due; false: the person has seen enough.
  std::function<bool()> wait;
  // Each picture takes the place of the one before: the output is a terminal.
  bool redraw = false;
  // Columns and rows of it, which a person may change; 0: no limit.
  std::function<std::pair<size_t, size_t>()> size = [] { return std::pair<size_t, size_t>(); };
};

// One picture, no longer than `style.rows` where that is a number: first the NICs that are healthy are left out, then old events, then
// what is at the end. Pure.
std::string Picture(const v1::StatusReply& status, const v1::ListNicsReply& nics, const std::vector<v1::Event>& events, const Style& style);

// Draws one picture after the other until `wait` ends it, or the daemon is gone.
absl::Status Watch(const WatchWorld& world, Style style, Client& client, std::ostream& out);

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_WATCH_H_
