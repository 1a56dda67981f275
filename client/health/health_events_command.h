// Holds the arguments of `r2ccctl health-events`.
#ifndef R2CC_CLIENT_HEALTH_HEALTH_EVENTS_COMMAND_H_
#define R2CC_CLIENT_HEALTH_HEALTH_EVENTS_COMMAND_H_

#include <string>

namespace r2cc::client {

struct HealthEventsCommand {
  std::string socket_path;  // of this node's r2ccd
  std::string connector;    // NVSentinel's Unix socket: a path
  std::string node;         // as Kubernetes calls it; empty: as r2ccd does
};

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_HEALTH_HEALTH_EVENTS_COMMAND_H_
