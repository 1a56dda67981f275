// Records what operators did, and what was refused to them: as events that no job's events displace, and in a file that outlives the
// machine's boots.
#ifndef R2CC_DAEMON_STATE_AUDIT_H_
#define R2CC_DAEMON_STATE_AUDIT_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/core/back_off.h"
#include "base/core/clock.h"
#include "base/executor.h"
#include "daemon/core/caller.h"
#include "daemon/core/event_reporter.h"
#include "daemon/io/files.h"
#include "proto/r2cc.pb.h"

namespace r2cc::daemon {

// How many refusals are written: a caller without rights may still ask a thousand times a second, and must not displace the records of
// others. Pure.
class RefusalAllowance {
 public:
  static constexpr uint64_t kBurst = 32;
  // 8,640 a day: some days of it fit into the file.
  static constexpr Nanos kInterval = 10 * kNanosPerSecond;

  explicit RefusalAllowance(uint64_t burst = kBurst, Nanos interval = kInterval) : burst_(burst), interval_(interval), left_(burst) {}

  // Whether one more is written. `suppressed`, if so: how many were not since the one before.
  bool Take(Nanos now, uint64_t* suppressed);

 private:
  uint64_t burst_;
  Nanos interval_;
  uint64_t left_;
  Nanos as_of_ = 0;
  uint64_t suppressed_ = 0;
};

// The core's thread only. The file has one JSON object a line (r2cc.v1.Event); with the next generation PATH becomes PATH.1.
class Audit {
 public:
  // Bytes of a generation: some 20,000 records.
  static constexpr size_t kFileBytesMax = 8 << 20;
  // Records that could not be written are tried again after this, later more seldom.
  static constexpr Nanos kRetryFirst = kNanosPerSecond;
  static constexpr Nanos kRetryMax = 30 * kNanosPerSecond;
  // Lines that wait for the disk, in memory; later ones are left out, and an event reports how many.
  static constexpr size_t kPendingBytesMax = 1'048'576;

  // All outlive it. `on_turn` is called, on the core's thread, when writing begins to fail and when it works again.
  Audit(Files* files, Executor* disk, Executor* core, std::string path, EventReporter* reporter,
        std::function<void(const absl::Status&)> on_turn);
  ~Audit() { End(); }
  Audit(const Audit&) = delete;
  Audit& operator=(const Audit&) = delete;

  // The newest `most` records of former runs, oldest first; once, before the first Add. `trouble` gets one line about what cannot be read.
  std::vector<v1::Event> Load(size_t most, std::string* trouble);

  // A request and its result.
  struct Entry {
    std::string action;  // "drain"
    std::string node;    // that it is about
    std::string nic;     // empty: the node
    std::string more;    // of the action: "for 10m"
    // OK: it was done. Otherwise why not.
    absl::Status status;
    std::string result;      // for a result that OK does not describe
    bool forwarded = false;  // it was handed on to that node's daemon
  };
  void Add(const Entry& entry, const Caller& caller);
  // Records an action that has an event of its own kind.
  void AddOf(v1::Event event, const std::string& action, const Caller& caller);
  // An unauthenticated caller, or one that claimed another identity, was refused: `times` since the last record of `listener` and `reason`,
  // which are of few kinds. Some of each kind are written at once, later one an hour with their number: such callers may try as often as
  // they like, and must not displace the records of operators.
  struct Refused {
    std::string listener;
    std::string reason;
    std::string who;   // with its address
    std::string what;  // what it wanted, and why not
    uint64_t times = 1;
  };
  static constexpr uint64_t kRefusedBurst = 8;
  static constexpr Nanos kRefusedInterval = 3600 * kNanosPerSecond;
  void AddRefused(const Refused& refused);
  // Hands to the disk all that waits for it, before the daemon ends. Nothing is added later.
  void End();
  // Records an action of this daemon itself, from `event`.
  void AddOwn(v1::Event event, const std::string& action);

 private:
  class File;
  // The record of a caller's request, without its target.
  v1::AuditRecord RecordOf(const std::string& action, const Caller& caller) const;
  void Write(v1::Event event);
  // The oldest line that is not written yet, if there is any.
  void AppendNext();
  void OnWritten(const absl::Status& status);

  Executor* const disk_;
  Executor* const core_;
  EventReporter* const reporter_;
  const std::function<void(const absl::Status&)> on_turn_;
  const std::shared_ptr<File> file_;  // after Load only the disk's thread uses it
  RefusalAllowance refusals_;
  struct RefusedOfKind {
    RefusalAllowance allowance{kRefusedBurst, kRefusedInterval};
    uint64_t suppressed = 0;
  };
  std::map<std::pair<std::string, std::string>, RefusedOfKind> refused_;  // by listener and reason
  bool failing_ = false;
  bool under_way_ = false;           // the first of these
  std::deque<std::string> pending_;  // lines that are not written yet
  size_t pending_bytes_ = 0;
  size_t left_out_ = 0;  // lines for which there was no room
  ExponentialBackOff back_off_{kRetryFirst, kRetryMax};
  TimerId retry_ = 0;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_STATE_AUDIT_H_
