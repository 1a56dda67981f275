// Watches the daemon's certificates while it runs: they end on all nodes on one day, and nothing else would report that.
#ifndef R2CC_DAEMON_RELOAD_CERTIFICATE_WATCH_H_
#define R2CC_DAEMON_RELOAD_CERTIFICATE_WATCH_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/core/clock.h"
#include "base/executor.h"
#include "base/log.h"
#include "daemon/reload/config_loader.h"

namespace r2cc::daemon {

// A month to renew at leisure; within the last week it is an error.
constexpr int64_t kCertificateWarnDays = 30;
constexpr int64_t kCertificateErrorDays = 7;

struct CertificateAlarm {
  std::string text;  // empty: all is well
  Severity level = Severity::kInfo;

  friend bool operator==(const CertificateAlarm&, const CertificateAlarm&) = default;
};

// Judges the files of node `node` at `now_s`, CLOCK_REALTIME. Pure.
CertificateAlarm JudgeCertificates(const CertificateState& state, const std::string& node, int64_t now_s);

// The core's thread only.
class CertificateWatch {
 public:
  struct Parts {
    Executor* core;
    Executor* disk;        // where `loader` may block
    ConfigLoader* loader;  // null: there is nothing to look at
    std::function<int64_t()> now_s;
    // The alarm of `status`; empty: there is none any more.
    std::function<void(const std::string& text)> set_alarm;
  };
  // Interval at which the files are read.
  static constexpr Nanos kInterval = 60 * kNanosPerSecond;

  // The parts outlive it, and what they post.
  CertificateWatch(Parts parts, Config config) : parts_(std::move(parts)), config_(std::make_shared<const Config>(std::move(config))) {}
  ~CertificateWatch() { *alive_ = false; }
  CertificateWatch(const CertificateWatch&) = delete;
  CertificateWatch& operator=(const CertificateWatch&) = delete;

  // Looks at the files on the disk's thread, sets the alarm, and logs a line when it begins, gets worse or ends.
  void Look();

  // When the first certificate ends, seconds of CLOCK_REALTIME; 0: there is none, or it is not known yet.
  int64_t until_s() const { return until_s_; }

 private:
  void Take(const CertificateState& state);

  const Parts parts_;
  const std::shared_ptr<const Config> config_;
  int64_t until_s_ = 0;
  Severity logged_ = Severity::kInfo;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_RELOAD_CERTIFICATE_WATCH_H_
