#include "daemon/state/audit.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/names.h"
#include "daemon/state/line_file.h"

namespace r2cc::daemon {
namespace {

constexpr size_t kResultBytesMax = 512;

}  // namespace

bool RefusalAllowance::Take(Nanos now, uint64_t* suppressed) {
  const Nanos steps = std::max<Nanos>(now - as_of_, 0) / interval_;
  left_ = std::min(burst_, left_ + static_cast<uint64_t>(steps));
  as_of_ += steps * interval_;
  if (left_ == 0) {
    ++suppressed_;
    return false;
  }
  --left_;
  *suppressed = std::exchange(suppressed_, 0);
  return true;
}

// Two generations, and what is known of the newer one's end.
class Audit::File {
 public:
  File(Files* files, std::string path) : files_(files), newer_(files, std::move(path)) {}

  std::vector<v1::Event> Load(size_t most, std::string* trouble) {
    std::vector<v1::Event> newest_first;
    size_t garbled = 0;
    for (const std::string& path : {newer_.path(), newer_.older()}) {
      const auto text = path == newer_.path() ? newer_.Read() : files_->Read(path);
      if (absl::IsNotFound(text.status())) continue;
      if (!text.ok()) {
        // Too large is none of ours. A file that cannot be read may be whole, and stays.
        const std::string aside = path + ".damaged";
        const bool foreign = absl::IsInvalidArgument(text.status());
        const absl::Status moved = foreign ? files_->Rename(path, aside) : absl::OkStatus();
        *trouble = absl::StrCat(text.status().message(), "; ",
                                !foreign     ? "it stays as it is"
                                : moved.ok() ? "it is kept as " + aside
                                             : std::string(moved.message()),
                                ", and a new audit is started");
        continue;
      }
      garbled += Parse(*text, most, &newest_first);
    }
    if (garbled > 0 && trouble->empty())
      *trouble = absl::StrCat(newer_.path(), ": ", garbled, " garbled lines of the audit are left out; they stay in the file");
    std::reverse(newest_first.begin(), newest_first.end());
    return newest_first;
  }

  absl::Status Append(const std::string& line) {
    if (newer_.bytes() + line.size() > kFileBytesMax)
      if (absl::Status status = newer_.Turn(); !status.ok()) return status;
    return newer_.Append(line);
  }

 private:
  // The number of lines that are none of ours.
  static size_t Parse(const std::string& text, size_t most, std::vector<v1::Event>* newest_first) {
    size_t garbled = 0;
    const std::vector<absl::string_view> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
    for (auto line = lines.rbegin(); line != lines.rend() && newest_first->size() < most; ++line) {
      v1::Event event;
      const bool sound = google::protobuf::util::JsonStringToMessage({line->data(), line->size()}, &event).ok() && event.has_audit();
      if (sound)
        newest_first->push_back(std::move(event));
      else
        ++garbled;
    }
    return garbled;
  }

  Files* const files_;
  LineFile newer_;
};

Audit::Audit(Files* files, Executor* disk, Executor* core, std::string path, EventReporter* reporter,
             std::function<void(const absl::Status&)> on_turn)
    : disk_(disk), core_(core), reporter_(reporter), on_turn_(std::move(on_turn)), file_(std::make_shared<File>(files, std::move(path))) {}

void Audit::End() {
  *alive_ = false;
  if (retry_ != 0) core_->Cancel(std::exchange(retry_, 0));
  // The first is with the disk already if it is under way.
  if (std::exchange(under_way_, false)) pending_.pop_front();
  for (std::string& line : std::exchange(pending_, {})) disk_->Post([file = file_, line = std::move(line)] { (void)file->Append(line); });
}

std::vector<v1::Event> Audit::Load(size_t most, std::string* trouble) { return file_->Load(most, trouble); }

void Audit::Add(const Entry& entry, const Caller& caller) {
  uint64_t suppressed = 0;
  if (!entry.status.ok() && !refusals_.Take(reporter_->Now().monotonic_ns, &suppressed)) return;
  const std::string target = entry.nic.empty() ? entry.node : absl::StrCat(entry.node, "/", entry.nic);
  // Also another daemon's words.
  const absl::string_view result_text = entry.status.ok() ? absl::string_view(entry.result) : entry.status.message();
  const std::string result = CleanText(result_text.data(), std::min(result_text.size(), kResultBytesMax));
  std::string text = absl::StrCat(entry.status.ok() ? "" : "refused: ", entry.action, " ", target, entry.more.empty() ? "" : " ",
                                  entry.more, ", by ", Describe(caller));
  if (entry.forwarded) absl::StrAppend(&text, ", forwarded");
  if (!result.empty()) absl::StrAppend(&text, ": ", result);
  if (suppressed > 0) absl::StrAppend(&text, "; ", suppressed, " more refusals before it are not written");
  v1::Event event = reporter_->New("operator", text);
  event.set_node(entry.node);
  event.set_nic(entry.nic);
  v1::AuditRecord* audit = event.mutable_audit();
  *audit = RecordOf(entry.action, caller);
  audit->set_target(target);
  audit->set_forwarded(entry.forwarded);
  audit->set_refused(!entry.status.ok());
  if (!entry.status.ok() || !result.empty()) audit->set_result(result);
  Write(std::move(event));
}

void Audit::AddOf(v1::Event event, const std::string& action, const Caller& caller) {
  *event.mutable_audit() = RecordOf(action, caller);
  event.mutable_audit()->set_target(event.node());
  Write(std::move(event));
}

v1::AuditRecord Audit::RecordOf(const std::string& action, const Caller& caller) const {
  v1::AuditRecord audit;
  audit.set_action(action);
  audit.set_who(Describe(caller));
  if (caller.kind == Caller::Kind::kLocal) {
    audit.set_uid(caller.uid);
    audit.set_pid(caller.pid);
  } else {
    audit.set_name(caller.name);
  }
  audit.set_address(caller.address);
  audit.set_via(caller.via);
  audit.set_via_proven(caller.via_proven);
  audit.set_result("done");
  audit.set_told_by(reporter_->node());
  return audit;
}

void Audit::AddRefused(const Refused& refused) {
  RefusedOfKind& kind = refused_[{refused.listener, refused.reason}];
  kind.suppressed += refused.times;
  uint64_t lines = 0;
  if (!kind.allowance.Take(reporter_->Now().monotonic_ns, &lines)) return;
  const auto clean = [](const std::string& text) { return CleanText(text.data(), std::min(text.size(), kResultBytesMax)); };
  const uint64_t times = std::exchange(kind.suppressed, 0);
  v1::Event event = reporter_->New(
      "stranger",
      absl::StrCat("refused on ", refused.listener, ": ", clean(refused.what), ", by ", clean(refused.who),
                   times > 1 ? absl::StrCat("; with it ", times, " such (", refused.reason, ") since the last such event") : ""));
  v1::AuditRecord* audit = event.mutable_audit();
  audit->set_action("stranger");
  audit->set_target(reporter_->node());
  audit->set_who(clean(refused.who));
  audit->set_refused(true);
  audit->set_result(clean(refused.what));
  audit->set_told_by(reporter_->node());
  Write(std::move(event));
}

void Audit::AddOwn(v1::Event event, const std::string& action) {
  v1::AuditRecord* audit = event.mutable_audit();
  audit->set_action(action);
  audit->set_target(absl::StrCat(event.node(), "/", event.nic()));
  audit->set_who("r2ccd");
  audit->set_result("done");
  audit->set_told_by(reporter_->node());
  Write(std::move(event));
}

void Audit::Write(v1::Event event) {
  std::string line = ToLine(event);
  if (pending_bytes_ + line.size() > kPendingBytesMax) {
    ++left_out_;
  } else {
    pending_bytes_ += line.size();
    pending_.push_back(std::move(line));
  }
  if (!under_way_ && retry_ == 0) AppendNext();
  reporter_->Report(std::move(event));
}

void Audit::AppendNext() {
  if (pending_.empty()) return;
  under_way_ = true;
  disk_->Post([this, alive = alive_, core = core_, file = file_, line = pending_.front()] {
    const absl::Status status = file->Append(line);
    core->Post([this, alive, status] {
      if (*alive) OnWritten(status);
    });
  });
}

void Audit::OnWritten(const absl::Status& status) {
  under_way_ = false;
  if (std::exchange(failing_, !status.ok()) != !status.ok()) on_turn_(status);
  if (!status.ok()) {
    retry_ = core_->RunAfter(back_off_.Next(), [this] {
      retry_ = 0;
      AppendNext();
    });
    return;
  }
  back_off_.Reset();
  pending_bytes_ -= pending_.front().size();
  pending_.pop_front();
  if (const size_t left_out = std::exchange(left_out_, 0); left_out > 0)
    reporter_->Report("state", absl::StrCat("the audit's file lacks ", left_out, " lines that came while it could not be written"));
  AppendNext();
}

}  // namespace r2cc::daemon
