#include "daemon/service/service_notifier.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace r2cc::daemon {
namespace {

// Fed so often in the manager's time, one sign of life may come late or be lost.
constexpr Nanos kFeedsPerWatchdog = 4;
// Longer waits are as good as none, and would not fit into nanoseconds.
constexpr int64_t kWatchdogUsMax = int64_t{24} * 3600 * 1'000'000;

std::string OneLine(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; }, ' ');
  return text;
}

}  // namespace

Nanos WatchdogTime(const char* usec, const char* pid, int64_t own_pid) {
  int64_t number = 0;
  if (pid != nullptr && (!absl::SimpleAtoi(pid, &number) || number != own_pid)) return 0;
  if (usec == nullptr || !absl::SimpleAtoi(usec, &number) || number <= 0) return 0;
  return std::min(number, kWatchdogUsMax) * (kNanosPerMs / 1000);
}

ServiceNotifier::ServiceNotifier(NotifySink* sink, Executor* core, Nanos watchdog, std::function<std::string()> status)
    : sink_(sink),
      core_(core),
      interval_(watchdog > 0 ? std::clamp<Nanos>(watchdog / kFeedsPerWatchdog, 1, kServiceTickInterval) : kServiceTickInterval),
      watched_(watchdog > 0),
      status_(std::move(status)) {}

void ServiceNotifier::Send(const std::string& state) { unsent_ = sink_->Notify(state) ? "" : state; }

void ServiceNotifier::Ready() {
  sent_status_ = OneLine(status_());
  Send(absl::StrCat("READY=1\nSTATUS=", sent_status_, watched_ ? "\nWATCHDOG=1" : ""));
  if (!std::exchange(ticks_, true)) Tick();
}

void ServiceNotifier::Reloading() { Send(absl::StrCat("RELOADING=1\nMONOTONIC_USEC=", core_->Now() / (kNanosPerMs / 1000))); }

void ServiceNotifier::Stopping() {
  ticks_ = false;
  Send("STOPPING=1\nSTATUS=ends; the jobs go on");
}

void ServiceNotifier::Tick() {
  core_->RunAfter(core_->UntilNext(interval_), [this, alive = alive_] {
    if (!*alive || !ticks_) return;
    Feed();
    Tick();
  });
}

void ServiceNotifier::Feed() {
  if (!unsent_.empty()) Send(std::string(unsent_));
  std::string lines = watched_ ? "WATCHDOG=1" : "";
  std::string status = OneLine(status_());
  const bool news = status != sent_status_;
  if (news) absl::StrAppend(&lines, lines.empty() ? "" : "\n", "STATUS=", status);
  if (!lines.empty() && sink_->Notify(lines) && news) sent_status_ = std::move(status);
}

}  // namespace r2cc::daemon
