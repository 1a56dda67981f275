#include "daemon/jobs/job_hangs.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/names.h"

namespace r2cc::daemon {
namespace {

constexpr char kSilent[] = "it no longer reports: the process is stopped or gets no processor time";

}  // namespace

std::string JobName(const v1::Job& job) { return absl::StrCat(job.job().empty() ? "job" : job.job(), " (pid ", job.pid(), ")"); }

void JobHangs::OnRecord(JobId id, const plan::EvidenceRecord& record) {
  const v1::Job* const job = registry_->Find(id);
  if (job == nullptr || record.local_rail >= static_cast<uint32_t>(job->rails_size())) return;
  const Moment now = reporter_->Now();
  const v1::RailTotals& rail = job->rails(static_cast<int>(record.local_rail));
  switch (static_cast<plan::EvidenceRecordKind>(record.kind)) {
    case plan::EvidenceRecordKind::kRailTotals:
      watch_.Totals(id, rail.sent_bytes() != record.bytes || rail.received_bytes() != record.received_bytes, now.monotonic_ns);
      break;
    case plan::EvidenceRecordKind::kWaiting: OnWaiting(id, *job, record, now); break;
    case plan::EvidenceRecordKind::kEnding:
      watch_.Gone(id);
      registry_->SetWaiting(id, std::nullopt);
      break;
    default: watch_.NoteAlive(id, now.monotonic_ns);
  }
}

void JobHangs::OnWaiting(JobId id, const v1::Job& job, const plan::EvidenceRecord& record, const Moment& now) {
  watch_.NoteAlive(id, now.monotonic_ns);
  if (record.bytes == 0) {
    watch_.Waits(id, 0);
    return registry_->SetWaiting(id, std::nullopt);
  }
  const Nanos when = std::clamp<Nanos>(record.time_ns, 0, now.monotonic_ns);
  const Nanos since = std::max<Nanos>(when - static_cast<Nanos>(std::min<uint64_t>(record.duration_ns, static_cast<uint64_t>(when))), 1);
  watch_.Waits(id, since);
  v1::JobWaiting waiting;
  waiting.set_hangs(job.waiting().hangs());
  waiting.set_since_ns(now.ToRealtime(since));
  waiting.set_requests(record.bytes);
  const std::string peer = CleanText(record.peer_node, sizeof(record.peer_node));
  std::string where = peer.empty() ? "a peer that has not answered yet" : peer;
  if (static_cast<plan::WaitFor>(record.replayed_bytes) == plan::WaitFor::kRail) {
    const v1::RailTotals& rail = job.rails(static_cast<int>(record.local_rail));
    waiting.set_rail(rail.nic().empty() ? rail.rail() : rail.nic());
    waiting.set_peer_nic(CleanText(record.peer_nic, sizeof(record.peer_nic)));
    where = absl::StrCat(peer, "/", waiting.peer_nic(), " over ", waiting.rail());
  }
  waiting.set_peer_node(peer);
  waiting.set_text(absl::StrCat("it waits for ", where, ": ", plan::WaitText(record.replayed_bytes)));
  registry_->SetWaiting(id, std::move(waiting));
}

void JobHangs::Tick() {
  for (const HangWatch::Turn& turn : watch_.Look(reporter_->Now().monotonic_ns))
    if (const v1::Job* const job = registry_->Find(turn.id); job != nullptr) Report(turn, *job);
}

void JobHangs::Report(const HangWatch::Turn& turn, const v1::Job& job) {
  const Moment now = reporter_->Now();
  const bool hangs = turn.hangs;
  const std::string name = JobName(job);
  const int64_t seconds = (now.monotonic_ns - turn.since) / kNanosPerSecond;
  v1::JobWaiting waiting = job.waiting();
  std::string text = absl::StrCat(name, " makes progress again after ", seconds, " s");
  if (hangs) {
    // A process that waits and falls silent waits still.
    if (!job.has_waiting()) {
      waiting.set_since_ns(now.ToRealtime(turn.since));
      waiting.set_text(kSilent);
    }
    waiting.set_hangs(true);
    const std::string requests =
        waiting.requests() == 0
            ? ""
            : absl::StrCat(" has ", waiting.requests(), waiting.requests() == 1 ? " request" : " requests", " outstanding and");
    text = absl::StrCat(name, requests, " has made no progress for ", seconds, " s: ", waiting.text());
  }
  v1::Event event = reporter_->New(hangs ? "job-hang" : "job-progress", text);
  event.set_pid(job.pid());
  event.set_job(job.job());
  event.set_peer_node(hangs ? waiting.peer_node() : "");
  event.set_peer_nic(hangs ? waiting.peer_nic() : "");
  event.set_duration_ns(now.monotonic_ns - turn.since);
  if (hangs)
    registry_->SetWaiting(turn.id, std::move(waiting));
  else if (job.waiting().requests() == 0)
    registry_->SetWaiting(turn.id, std::nullopt);
  if (may_report_(turn.id)) reporter_->Report(std::move(event));
}

Nanos JobHangs::WaitedBy(JobId id) const {
  const Nanos since = watch_.Since(id);
  return since == 0 ? 0 : std::max<Nanos>(reporter_->Now().monotonic_ns - since, 0);
}

}  // namespace r2cc::daemon
