// Reports what happens, once, to all listeners: as an event and as a log line.
#ifndef R2CC_DAEMON_CORE_EVENT_REPORTER_H_
#define R2CC_DAEMON_CORE_EVENT_REPORTER_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/executor.h"
#include "base/log.h"
#include "daemon/core/convert.h"
#include "daemon/core/event_line.h"
#include "daemon/core/event_log.h"
#include "health/evidence/evidence.h"
#include "health/view/nic_state.h"

namespace r2cc::daemon {

// Core thread only. Reports are kept and logged one turn of the core later: the page and the peers that wait for the same news go first,
// however slow the log is.
class EventReporter {
 public:
  // `events` and `executor` outlive the reporter.
  EventReporter(EventLog* events, std::string node, Executor* executor, std::function<int64_t()> realtime_ns)
      : events_(events), node_(std::move(node)), executor_(executor), realtime_ns_(std::move(realtime_ns)) {}
  ~EventReporter() {
    *alive_ = false;
    Flush();
  }
  EventReporter(const EventReporter&) = delete;
  EventReporter& operator=(const EventReporter&) = delete;

  Moment Now() const { return {executor_->Now(), realtime_ns_()}; }

  // An event of this node and moment; the caller adds what else it has.
  v1::Event New(const std::string& kind, const std::string& message) const {
    const Moment now = Now();
    v1::Event event;
    event.set_kind(kind);
    event.set_message(message);
    event.set_node(node_);
    event.set_time_ns(now.realtime_ns);
    event.set_monotonic_ns(now.monotonic_ns);
    return event;
  }

  void Report(v1::Event event) {
    pending_.push_back(std::move(event));
    if (pending_.size() > 1) return;
    // Twice: what this turn has posted, or is about to post, runs before it.
    executor_->Post([this, alive = alive_] {
      if (!*alive) return;
      executor_->Post([this, alive] {
        if (*alive) Flush();
      });
    });
  }

  // Keeps and logs pending reports at once.
  void Flush() {
    for (v1::Event& event : std::exchange(pending_, {})) Write(std::move(event));
  }

  // A NIC's change of state, of this node or another.
  void ReportState(const health::NicKey& nic, health::NicState from, health::NicState to, const std::string& reason) {
    v1::Event event = New("nic-state", reason);
    event.set_node(nic.node);
    event.set_nic(nic.nic);
    event.set_from_state(ToProto(from));
    event.set_to_state(ToProto(to));
    Report(std::move(event));
  }
  // Reports a notice of the subnet manager; `nic` may be unknown.
  void ReportFabric(const health::NicKey& nic, const std::string& text) {
    v1::Event event = New("fabric", text);
    if (!nic.node.empty()) event.set_node(nic.node);
    event.set_nic(nic.nic);
    Report(std::move(event));
  }
  void Report(const std::string& kind, const std::string& message) { Report(New(kind, message)); }

  const std::string& node() const { return node_; }

  // Sets a function that is called with each event once it has its number.
  void KeepBy(std::function<void(const v1::Event&)> keep) { keep_ = std::move(keep); }

 private:
  void Write(v1::Event event) {
    const bool moved = event.to_state() != v1::NIC_STATE_UNSPECIFIED;
    const auto log = EventLevel(event) == Severity::kWarning ? LogWarning : LogInfo;
    log(EventLine(event), {{"event", event.kind()},
                           LogField::Structured("message_id", EventMessageId(event.kind())),
                           LogField::Structured("node", event.node()),
                           LogField::Structured("nic", event.nic()),
                           LogField::Structured("from", moved ? v1::NicState_Name(event.from_state()) : ""),
                           LogField::Structured("to", moved ? v1::NicState_Name(event.to_state()) : ""),
                           LogField::Structured("job", event.job()),
                           LogField::Structured("pid", event.pid() == 0 ? "" : std::to_string(event.pid())),
                           LogField::Structured("cause", event.cause()),
                           LogField::Structured("peer_node", event.peer_node()),
                           LogField::Structured("peer_nic", event.peer_nic())});
    event.set_sequence(events_->Append(event));
    event.set_instance(events_->instance());
    if (keep_) keep_(event);
  }

  EventLog* const events_;
  const std::string node_;
  Executor* const executor_;
  const std::function<int64_t()> realtime_ns_;
  std::function<void(const v1::Event&)> keep_;
  std::vector<v1::Event> pending_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_CORE_EVENT_REPORTER_H_
