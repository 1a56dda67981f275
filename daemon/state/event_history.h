// The events of this node over restarts of the daemon: a file in the state directory.
#ifndef R2CC_DAEMON_STATE_EVENT_HISTORY_H_
#define R2CC_DAEMON_STATE_EVENT_HISTORY_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/core/back_off.h"
#include "base/core/clock.h"
#include "base/executor.h"
#include "daemon/io/files.h"
#include "proto/r2cc.pb.h"

namespace r2cc::daemon {

// The core's thread only. The file has one JSON object a line (r2cc.v1.Event), as the audit. With the next generation PATH becomes PATH.1.
// The instance of the history is in each event.
class EventHistory {
 public:
  // Events of a generation. A daemon reads both at its start, about 20 us an event.
  static constexpr size_t kEventsMax = 16384;
  static constexpr size_t kFileBytesMax = 16 << 20;
  // A generation that began longer ago is not continued; events that are older are not read.
  static constexpr int64_t kAgeMaxNs = 14 * 24 * 3600 * int64_t{1'000'000'000};
  // Bytes that are gathered while the disk does not answer. Beyond that events are in no file, with a line in the log.
  static constexpr size_t kGatheredBytesMax = 1'048'576;
  // Events are gathered for this time: a crash of the daemon loses no more than that.
  static constexpr Nanos kGather = 200 * kNanosPerMs;
  // A file that could not be written is tried again after this, later more seldom. Lines of that time are lost.
  static constexpr Nanos kRetryFirst = kNanosPerSecond;
  static constexpr Nanos kRetryMax = 30 * kNanosPerSecond;

  // All outlive it. `on_turn` is called on the core's thread when writing begins to fail and when it works again.
  EventHistory(Files* files, Executor* disk, Executor* core, std::string path, std::function<void(const absl::Status&)> on_turn);
  ~EventHistory();
  EventHistory(const EventHistory&) = delete;
  EventHistory& operator=(const EventHistory&) = delete;

  // The events of former runs, by ascending number, all of one instance; once, before the first Add. `trouble` gets one line about what
  // cannot be read.
  std::vector<v1::Event> Load(int64_t now_realtime_ns, std::string* trouble);
  // Whether the former run wrote all its events, or there was none. Otherwise numbers after those of Load() may be in use. After Load.
  bool is_whole() const { return is_whole_; }

  // Writes the event some time later. It has its number and instance.
  void Add(const v1::Event& event);
  // Writes what was gathered at once.
  void Flush();
  // The same at the end of the run, with a mark that nothing is lacking if that is so. Nothing is added later.
  void End();

 private:
  class File;
  void Schedule();
  void Write();
  void OnWritten(const absl::Status& status);

  Executor* const disk_;
  Executor* const core_;
  const std::function<void(const absl::Status&)> on_turn_;
  const std::shared_ptr<File> file_;  // after Load only the disk's thread uses it
  std::string gathered_;
  size_t gathered_events_ = 0;
  size_t left_out_ = 0;  // events for which there was no room since the last write
  int under_way_ = 0;    // writes
  int64_t newest_ns_ = 0;
  v1::Event mark_;        // of the newest event
  bool complete_ = true;  // no event of this run was left out
  bool is_whole_ = true;
  bool scheduled_ = false;
  bool failing_ = false;
  ExponentialBackOff back_off_{kRetryFirst, kRetryMax};
  TimerId retry_ = 0;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_STATE_EVENT_HISTORY_H_
