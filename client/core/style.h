// How text for people is drawn: the time, the time zone, colour and the size of the terminal, as values.
#ifndef R2CC_CLIENT_CORE_STYLE_H_
#define R2CC_CLIENT_CORE_STYLE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/time/time.h"

namespace r2cc::client {

struct Style {
  // CLOCK_REALTIME, for "3 min ago".
  int64_t now_ns = 0;
  absl::TimeZone zone = absl::UTCTimeZone();
  bool colour = false;
  // The terminal's width, in characters; 0: the output is none, and lines are as long as they are.
  size_t width = 0;
  size_t rows = 0;
  // The name of a user of the node that was asked; empty: not known.
  std::function<std::string(uint32_t uid)> user_name = [](uint32_t) { return std::string(); };
};

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_CORE_STYLE_H_
