// `r2ccctl health-events`: hands the health of this node's NICs on to NVSentinel, until it is ended.
#ifndef R2CC_CLIENT_HEALTH_HEALTH_EVENTS_H_
#define R2CC_CLIENT_HEALTH_HEALTH_EVENTS_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/health/health_events_command.h"
#include "proto/nvsentinel.pb.h"
#include "proto/r2cc.pb.h"

namespace r2cc::client {

// NVSentinel's platform connector.
class HealthSink {
 public:
  virtual ~HealthSink() = default;
  virtual absl::Status Publish(const datamodels::HealthEvents& events) = 0;
};

// At the Unix socket `path`. Waits for an answer for some seconds at most.
std::unique_ptr<HealthSink> ConnectHealthSink(const std::string& path);

// Looks at the node each second, as long as `wait` (milliseconds) is true. `own`: the view that r2ccd has of this node. `log`: gets a line
// for the log when something changes in what can be read or delivered.
void FollowHealth(const std::string& node, const std::function<absl::StatusOr<v1::NodeView>()>& own, HealthSink* sink,
                  const std::function<int64_t()>& now_realtime_ns, const std::function<void(const std::string&)>& log,
                  const std::function<bool(int milliseconds)>& wait);

// The exit code.
int Run(const HealthEventsCommand& command, const std::function<int64_t()>& now_realtime_ns,
        const std::function<bool(int milliseconds)>& wait);

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_HEALTH_HEALTH_EVENTS_H_
