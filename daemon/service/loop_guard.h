// Watches the daemon's loops from a thread of its own.
#ifndef R2CC_DAEMON_SERVICE_LOOP_GUARD_H_
#define R2CC_DAEMON_SERVICE_LOOP_GUARD_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/core/clock.h"
#include "base/event_loop.h"
#include "base/log.h"
#include "base/stall_guard.h"

namespace r2cc::daemon {

// While it exists, a loop that does not turn is reported, and log lines that wait for their reader are written.
class LoopGuard {
 public:
  // The page's heartbeat, which jobs believe in for two seconds, is the core's.
  static constexpr Nanos kCoreStallMax = kNanosPerSecond;
  static constexpr Nanos kDiskStallMax = 10 * kNanosPerSecond;

  // `core_turns` is called about the core only, on the guard's thread.
  LoopGuard(Executor* core, Executor* disk, std::function<void(bool turns)> core_turns)
      : thread_("r2ccd-guard"), core_turns_(std::move(core_turns)) {
    thread_.loop().RunAndWait([&] {
      FlushLogs();
      guard_ = std::make_unique<StallGuard>(
          &thread_.loop(), std::vector<StallGuard::Watched>{{kCore, core, kCoreStallMax}, {"disk", disk, kDiskStallMax}},
          [this](const std::string& name, bool stalled, Nanos lasted) {
            if (name == kCore) core_turns_(!stalled);
            const std::string text = absl::StrCat("the ", name, " loop ", stalled ? "does not turn" : "turns again");
            if (stalled)
              LogError(text, {{"for_ms", lasted / kNanosPerMs}});
            else
              LogWarning(text, {{"after_ms", lasted / kNanosPerMs}});
          });
    });
  }
  ~LoopGuard() {
    thread_.loop().RunAndWait([&] {
      guard_.reset();
      thread_.loop().Cancel(flush_);
    });
  }
  LoopGuard(const LoopGuard&) = delete;
  LoopGuard& operator=(const LoopGuard&) = delete;

 private:
  static constexpr char kCore[] = "core";
  // At the guard's own times, so that it wakes up no more often.
  void FlushLogs() {
    flush_ = thread_.loop().RunAfter(thread_.loop().UntilNext(kStallAskInterval), [this] { FlushLogs(); });
    FlushLog();
  }
  ScopedLoopThread thread_;
  const std::function<void(bool turns)> core_turns_;
  std::unique_ptr<StallGuard> guard_;
  TimerId flush_ = 0;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_SERVICE_LOOP_GUARD_H_
