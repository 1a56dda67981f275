// Parses the flags of `r2ccctl events`, which select events.
#ifndef R2CC_CLIENT_COMMANDS_EVENTS_SOUGHT_H_
#define R2CC_CLIENT_COMMANDS_EVENTS_SOUGHT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/r2cc.pb.h"

namespace r2cc::client {

// As it was typed; empty: not given.
struct EventsSought {
  bool follow = false;
  std::string run;  // a program for each event
  std::string after;
  std::string since;
  std::string node;
  std::string nic;
  std::vector<std::string> kinds;
  uint32_t last = 0;
};

// "daemon-started, drill, ...": for --help and errors.
std::string EventKindsText();

// InvalidArgument, with the flag and what it takes. `now` and `zone`: for --since.
absl::StatusOr<v1::EventsRequest> MakeEventsRequest(const EventsSought& sought, absl::Time now, absl::TimeZone zone);

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_COMMANDS_EVENTS_SOUGHT_H_
