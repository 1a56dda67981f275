#include "daemon/state/event_history.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/log.h"
#include "daemon/state/line_file.h"

namespace r2cc::daemon {
namespace {

// Greater numbers are damage: no history has so many events.
constexpr uint64_t kSequenceMost = uint64_t{1} << 62;

}  // namespace

// Two generations, and what is known of the newer one.
class EventHistory::File {
 public:
  File(Files* files, std::string path) : files_(files), newer_(files, std::move(path)) {}

  std::vector<v1::Event> Load(int64_t now_ns, std::string* trouble) {
    std::vector<v1::Event> events;
    size_t garbled = 0;
    for (const std::string& path : {newer_.older(), newer_.path()}) {
      const auto text = path == newer_.path() ? newer_.Read() : files_->Read(path);
      if (absl::IsNotFound(text.status())) continue;
      if (!text.ok()) {
        is_whole_ = false;
        // Lack of permission is no damage: the file stays, and this run's events go to no file.
        if (path == newer_.path()) unreadable_ = true;
        *trouble =
            absl::StrCat(text.status().message(), "; events of before are missing", unreadable_ ? ", and new ones will not be kept" : "");
        continue;
      }
      const size_t before = events.size();
      garbled += Parse(*text, now_ns, &events);
      if (path != newer_.path()) continue;
      events_ = events.size() - before;
      if (events.size() > before) began_ns_ = events[before].time_ns();
    }
    if (garbled > 0 && trouble->empty())
      *trouble = absl::StrCat(newer_.path(), ": ", garbled, " garbled lines of the history are left out; they stay in the file");
    return events;
  }

  absl::Status Append(const std::string& lines, size_t count, int64_t now_ns) {
    if (unreadable_) return absl::OkStatus();
    const bool full = newer_.bytes() + lines.size() > kFileBytesMax || events_ + count > kEventsMax;
    if (newer_.bytes() > 0 && (full || now_ns - began_ns_ > kAgeMaxNs)) {
      if (absl::Status status = newer_.Turn(); !status.ok()) {
        lost_ = true;
        return status;
      }
      events_ = 0;
    }
    if (newer_.bytes() == 0) began_ns_ = now_ns;
    const absl::Status status = newer_.Append(lines);
    if (status.ok()) events_ += count;
    lost_ |= !status.ok();
    return status;
  }

  // `mark`: a line for the end of a run that lost nothing. An event without a kind is a mark: it has the number of the newest event.
  void End(const std::string& mark) {
    if (!unreadable_ && !lost_) (void)newer_.Append(mark);
  }
  bool is_whole() const { return is_whole_; }

 private:
  // The number of lines that are none of ours. Events of an instance before are forgotten with it.
  size_t Parse(const std::string& text, int64_t now_ns, std::vector<v1::Event>* events) {
    size_t garbled = 0;
    const std::vector<absl::string_view> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
    // More than this release writes into a file: the newest.
    const size_t first = lines.size() > kEventsMax ? lines.size() - kEventsMax : 0;
    for (size_t i = first; i < lines.size(); ++i) {
      v1::Event event;
      const bool sound = google::protobuf::util::JsonStringToMessage({lines[i].data(), lines[i].size()}, &event).ok() &&
                         event.sequence() > 0 && event.sequence() <= kSequenceMost && event.instance() != 0;
      const bool marks = sound && event.kind().empty();
      const v1::Event* const last = events->empty() ? nullptr : &events->back();
      is_whole_ = marks && last != nullptr && event.instance() == last->instance() && event.sequence() == last->sequence();
      if (marks) continue;
      if (!sound) {
        ++garbled;
        continue;
      }
      if (!events->empty() && events->back().instance() != event.instance()) events->clear();
      if (!events->empty() && event.sequence() <= events->back().sequence()) {
        ++garbled;
        continue;
      }
      if (now_ns - event.time_ns() <= kAgeMaxNs) events->push_back(std::move(event));
    }
    return garbled;
  }

  Files* const files_;
  LineFile newer_;
  size_t events_ = 0;
  int64_t began_ns_ = 0;
  bool unreadable_ = false;
  bool lost_ = false;  // an event of this run
  bool is_whole_ = true;
};

EventHistory::EventHistory(Files* files, Executor* disk, Executor* core, std::string path, std::function<void(const absl::Status&)> on_turn)
    : disk_(disk), core_(core), on_turn_(std::move(on_turn)), file_(std::make_shared<File>(files, std::move(path))) {}

EventHistory::~EventHistory() {
  *alive_ = false;
  if (retry_ != 0) core_->Cancel(retry_);
}

std::vector<v1::Event> EventHistory::Load(int64_t now_realtime_ns, std::string* trouble) {
  std::vector<v1::Event> events = file_->Load(now_realtime_ns, trouble);
  is_whole_ = file_->is_whole();
  return events;
}

void EventHistory::Add(const v1::Event& event) {
  if (gathered_.size() > kGatheredBytesMax) {
    ++left_out_;
    complete_ = false;
    return;
  }
  gathered_ += ToLine(event);
  ++gathered_events_;
  newest_ns_ = event.time_ns();
  mark_.set_instance(event.instance());
  mark_.set_sequence(event.sequence());
  Schedule();
}

void EventHistory::Schedule() {
  if (under_way_ > 0 || std::exchange(scheduled_, true)) return;
  core_->RunAfter(kGather, [this, alive = alive_] {
    if (!*alive) return;
    scheduled_ = false;
    Flush();
  });
}

void EventHistory::Flush() {
  if (!gathered_.empty()) Write();
}

void EventHistory::End() {
  Flush();
  if (complete_ && mark_.sequence() > 0) disk_->Post([file = file_, mark = ToLine(mark_)] { file->End(mark); });
}

void EventHistory::Write() {
  ++under_way_;
  disk_->Post([this, alive = alive_, core = core_, file = file_, lines = std::exchange(gathered_, ""),
               count = std::exchange(gathered_events_, 0), now_ns = newest_ns_] {
    const absl::Status status = file->Append(lines, count, now_ns);
    core->Post([this, alive, status] {
      if (*alive) OnWritten(status);
    });
  });
}

void EventHistory::OnWritten(const absl::Status& status) {
  --under_way_;
  if (const size_t left_out = std::exchange(left_out_, 0); left_out > 0)
    LogWarning("the disk was too slow for the history of events: some are not in it", {{"events", left_out}});
  if (!gathered_.empty()) Schedule();
  if (std::exchange(failing_, !status.ok()) != !status.ok()) on_turn_(status);
  if (status.ok()) return back_off_.Reset();
  // Without an event, too, so that the alarm ends.
  if (retry_ != 0) return;
  retry_ = core_->RunAfter(back_off_.Next(), [this] {
    retry_ = 0;
    if (failing_ && under_way_ == 0) Write();
  });
}

}  // namespace r2cc::daemon
