// Responses as bytes, and events as server-sent ones. Pure.
#ifndef R2CC_DAEMON_HTTP_RESPONSE_H_
#define R2CC_DAEMON_HTTP_RESPONSE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "proto/r2cc.pb.h"

namespace r2cc::daemon {

constexpr char kPlainText[] = "text/plain; charset=utf-8";
constexpr char kJson[] = "application/json";
constexpr char kEventStream[] = "text/event-stream";
// Prometheus' text format.
constexpr char kMetricsText[] = "text/plain; version=0.0.4; charset=utf-8";

struct HttpResponse {
  int status = 200;
  std::string type = kPlainText;
  std::string body;
  bool stream = false;  // what follows the body has no end
  bool page = false;    // a file of the page at /: it may use this daemon, and nothing else
};

// One line for a person.
HttpResponse HttpError(int status, std::string_view text);

// The whole response; of one to HEAD the body is left out. `close`: the connection ends behind it, as it does behind a stream. No web page
// of another origin may use it, and none that it is shown in may run anything.
std::string Render(const HttpResponse& response, bool head, bool close);

// One event, with an id by which the client resumes.
std::string EventFrame(const v1::Event& event);
// A sign of life, which clients ignore.
constexpr std::string_view kHeartbeatFrame = ": r2ccd lives\n\n";

// The place of an event: "INSTANCE-SEQUENCE".
struct EventPlace {
  uint64_t instance = 0;
  uint64_t sequence = 0;

  friend bool operator==(const EventPlace&, const EventPlace&) = default;
};
// The place that a Last-Event-ID header names; nothing if it is none of ours.
std::optional<EventPlace> ParseEventId(std::string_view text);

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_HTTP_RESPONSE_H_
