// Reads the configuration again while the daemon runs: it puts into force what can be, reports what cannot, and changes nothing if a file
// has a mistake.
#ifndef R2CC_DAEMON_RELOAD_RELOAD_SERVICE_H_
#define R2CC_DAEMON_RELOAD_RELOAD_SERVICE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/executor.h"
#include "daemon/config/config.h"
#include "daemon/core/answer.h"
#include "daemon/core/caller.h"
#include "daemon/core/event_reporter.h"
#include "daemon/reload/config_loader.h"
#include "daemon/state/audit.h"
#include "proto/r2cc.pb.h"

namespace r2cc::daemon {

// The core's thread only.
class ReloadService {
 public:
  struct Parts {
    Executor* core;
    Executor* disk;        // where `loader` may block
    ConfigLoader* loader;  // null: the configuration is not to be had again
    EventReporter* reporter;
    Audit* audit;
    // Puts what can change into force: all of it, whether it has changed or not.
    std::function<void(const Config& config, const RolePolicy& roles)> apply;
  };

  // The parts outlive it, and what they post. `config`: in force now.
  ReloadService(const Parts& parts, Config config);
  ~ReloadService() { *alive_ = false; }
  ReloadService(const ReloadService&) = delete;
  ReloadService& operator=(const ReloadService&) = delete;

  // `may`: whether the caller has the role. INVALID_ARGUMENT with a line for each thing that is wrong with the files.
  void Reload(const Caller& caller, const absl::Status& may, Answer<v1::ReloadReply> answer);

  v1::ConfigState State() const;
  // Certificates are looked at for it.
  void Show(Answer<v1::ConfigReply> answer) const;
  // Conditions that need an operator, a line each.
  std::vector<std::string> Alarms() const;

 private:
  absl::StatusOr<v1::ReloadReply> Take(const absl::StatusOr<LoadedConfig>& loaded);

  const Parts parts_;
  Config config_;
  int64_t read_ns_;
  std::vector<std::string> refused_;  // why the newest reading was, a line each; empty: it was not
  int64_t refused_ns_ = 0;
  std::vector<std::string> needs_restart_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_RELOAD_RELOAD_SERVICE_H_
