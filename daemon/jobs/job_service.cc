#include "daemon/jobs/job_service.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/names.h"
#include "plan/page/gave_up.h"

namespace r2cc::daemon {
namespace {

// A job's clock is this machine's, so what it saw lies in the near past; anything else is a mistake.
constexpr Nanos kRecordAgeMax = 60 * kNanosPerSecond;
// One rail lost by processes with very many peers makes as many events at once.
constexpr double kEventsBurst = 1024;
constexpr double kEventsPerSecond = 32;
// Shares whose events are counted.
constexpr size_t kAllowancesMax = 1024;
constexpr uint64_t kPacketBytesMax = 65'535;
constexpr uint64_t kConnectionsMax = 1024;  // of one link
constexpr size_t kUnprovenMax = 256;        // of one process
constexpr size_t kLossesMax = 1024;
// However many jobs complain, a NIC's pairs are not asked again more often than this.
constexpr Nanos kLookIntervalMin = 100 * kNanosPerMs;

health::JobReport::Cause CauseOf(plan::EvidenceCause cause) {
  switch (cause) {
    case plan::EvidenceCause::kLinkDown: return health::JobReport::Cause::kOwnLinkDown;
    case plan::EvidenceCause::kSocketError: return health::JobReport::Cause::kBroken;
    case plan::EvidenceCause::kSilence:
    case plan::EvidenceCause::kStalled:
    case plan::EvidenceCause::kLargeLost: return health::JobReport::Cause::kSilent;
    default: return health::JobReport::Cause::kNotOurs;
  }
}

// The traffic that a link does not carry, for a person; empty: the cause is complete. The numbers are a job's claim: impossible ones are
// not repeated.
std::string LostText(const plan::EvidenceRecord& record) {
  const auto cause = static_cast<plan::EvidenceCause>(record.cause);
  if (cause == plan::EvidenceCause::kLargeLost)
    return record.bytes > 0 && record.bytes <= kPacketBytesMax ? absl::StrCat("packets over ", record.bytes, " bytes are lost")
                                                               : "large packets are lost";
  if (cause != plan::EvidenceCause::kStalled) return "";
  const uint64_t stalled = record.bytes >> 32;
  const uint64_t all = record.bytes & UINT32_MAX;
  if (stalled == 0 || stalled > all || all > kConnectionsMax) return "some of its connections carry nothing";
  if (all == 1) return "its connection carries nothing";
  if (stalled == all) return absl::StrCat("all ", all, " connections carry nothing");
  return absl::StrCat(stalled == 1 ? "one" : absl::StrCat(stalled), " of ", all, " connections ", stalled == 1 ? "carries" : "carry",
                      " nothing");
}

// Records that waited for this daemon may be of long ago, and of a run the begin.
Nanos TimeOf(const plan::EvidenceRecord& record, const Moment& now) {
  const auto kind = static_cast<plan::EvidenceRecordKind>(record.kind);
  const bool may_be_old = kind == plan::EvidenceRecordKind::kRun || (plan::IsNumbered(kind) && record.received_bytes != 0);
  if (may_be_old) return std::clamp<Nanos>(record.time_ns, 0, now.monotonic_ns);
  return std::clamp(record.time_ns, now.monotonic_ns - kRecordAgeMax, now.monotonic_ns);
}

}  // namespace

AttachServer::Callbacks JobService::Callbacks() {
  return {[this](JobId id, const JobProcess& process, const plan::AttachRequest& request) { return OnAttach(id, process, request); },
          [this](JobId id, const std::vector<plan::EvidenceRecord>& records, uint64_t dropped) {
            std::vector<plan::EvidenceRecord> news;
            for (const auto& record : records) {
              if (registry_.Knows(id, record)) continue;
              OnRecord(id, record);
              news.push_back(record);
            }
            OnGaveUp(id, news);
            registry_.SetDropped(id, dropped);
          },
          [this](JobId id) { OnEnd(id); }};
}

AttachDecision JobService::OnAttach(JobId id, const JobProcess& process, const plan::AttachRequest& request) {
  AttachDecision decision{"", reporter_->node(), MatchRails(request, outputs_.nics(), own_netns_inode_)};
  registry_.Add(id, process, request, decision.nics, reporter_->Now().realtime_ns);
  hangs_.OnAttach(id);
  const v1::Job& job = *registry_.Find(id);
  std::string unmatched;
  for (const auto& rail : job.rails())
    if (rail.nic().empty()) absl::StrAppend(&unmatched, unmatched.empty() ? "" : " ", rail.rail());
  v1::Event event =
      reporter_->New("job-attached", absl::StrCat(JobName(job), " attached with ", job.rails_size(), " rails",
                                                  unmatched.empty() ? "" : absl::StrCat("; none of this node's NICs: ", unmatched)));
  event.set_pid(process.pid);
  event.set_job(job.job());
  shares_[id] = process.share.empty() ? ShareOfUser(process.uid) : process.share;
  if (MayReport(shares_[id])) reporter_->Report(std::move(event));
  return decision;
}

bool JobService::MayReport(const std::string& share) {
  const Nanos now = reporter_->Now().monotonic_ns;
  if (allowances_.size() >= kAllowancesMax && !allowances_.contains(share)) allowances_.clear();
  Allowance& allowance = allowances_.try_emplace(share, Allowance{now, kEventsBurst, 0}).first->second;
  const double earned = static_cast<double>(now - allowance.as_of) / kNanosPerSecond * kEventsPerSecond;
  allowance.events = std::min(kEventsBurst, allowance.events + earned);
  allowance.as_of = now;
  if (allowance.events < 1) {
    if (allowance.suppressed++ == 0) LogWarning("rate limit: suppressing events from jobs of one user or container", {{"of", share}});
    return false;
  }
  allowance.events -= 1;
  if (const uint64_t suppressed = std::exchange(allowance.suppressed, 0); suppressed > 0)
    LogWarning("rate limit: events from jobs of one user or container were suppressed", {{"of", share}, {"events", suppressed}});
  return true;
}

void JobService::NoteTraffic(JobId id, const plan::EvidenceRecord& record) {
  const v1::Job* const job = registry_.Find(id);
  if (job == nullptr || static_cast<plan::EvidenceRecordKind>(record.kind) != plan::EvidenceRecordKind::kRailTotals ||
      record.local_rail >= static_cast<uint32_t>(job->rails_size()))
    return;
  const v1::RailTotals& rail = job->rails(static_cast<int>(record.local_rail));
  if (!rail.nic().empty() && (rail.sent_bytes() != record.bytes || rail.received_bytes() != record.received_bytes))
    moved_[rail.nic()][id] = reporter_->Now().monotonic_ns;
}

v1::NicTraffic JobService::TrafficOn(const std::string& nic, const std::string& job) const {
  v1::NicTraffic traffic;
  for (std::string& name : JobsOn(nic, job)) traffic.add_jobs(std::move(name));
  traffic.set_quiet_ns(-1);
  const auto moved = moved_.find(nic);
  if (moved == moved_.end()) return traffic;
  for (const auto& [id, when] : moved->second) {
    const v1::Job* const process = registry_.Find(id);
    if (process == nullptr || (!job.empty() && process->job() != job)) continue;
    const int64_t quiet = reporter_->Now().monotonic_ns - when;
    traffic.set_quiet_ns(traffic.quiet_ns() < 0 ? quiet : std::min(traffic.quiet_ns(), quiet));
  }
  return traffic;
}

void JobService::OnRecord(JobId id, const plan::EvidenceRecord& record) {
  NoteTraffic(id, record);
  hangs_.OnRecord(id, record);
  if (!registry_.Record(id, record)) return;
  const auto kind = static_cast<plan::EvidenceRecordKind>(record.kind);
  const Moment now = reporter_->Now();
  const Nanos when = TimeOf(record, now);
  registry_.Note(id, record, {when, now.ToRealtime(when)});
  NoteLoss(id, record, when);
  if (kind == plan::EvidenceRecordKind::kRailSlow || kind == plan::EvidenceRecordKind::kRailSteady) return OnShare(id, record);
  if (kind == plan::EvidenceRecordKind::kOperationHeld) return OnHeld(id, record, when);
  const bool unproven = kind == plan::EvidenceRecordKind::kProofFailed;
  if (kind != plan::EvidenceRecordKind::kLinkFenced && kind != plan::EvidenceRecordKind::kLinkUp && !unproven) return;
  if (kind == plan::EvidenceRecordKind::kLinkUp)
    if (const auto known = unproven_.find(id); known != unproven_.end())
      known->second.erase({record.local_rail, CleanText(record.peer_node, sizeof(record.peer_node))});
  const bool fenced = kind == plan::EvidenceRecordKind::kLinkFenced;
  const v1::Job& job = *registry_.Find(id);
  const auto& rail = job.rails(static_cast<int>(record.local_rail));
  const std::string peer_node = CleanText(record.peer_node, sizeof(record.peer_node));
  const std::string peer_nic = CleanText(record.peer_nic, sizeof(record.peer_nic));
  const auto cause = static_cast<plan::EvidenceCause>(record.cause);
  const std::string cause_name = plan::CauseName(cause);
  const std::string link = absl::StrCat(rail.nic().empty() ? rail.rail() : rail.nic(), " -> ", peer_node, "/", peer_nic);

  const std::string lost = LostText(record);
  const std::string why = lost.empty() ? plan::CauseText(cause, 0) : lost;
  std::string text = absl::StrCat(JobName(job), ": ", link, " carries data");
  if (fenced)
    text = absl::StrFormat("%s gave up %s: %s; %d bytes replayed, %.1f ms", JobName(job), link, why, record.replayed_bytes,
                           static_cast<double>(record.duration_ns) / kNanosPerMs);
  if (unproven) text = absl::StrCat(JobName(job), " cannot open ", link, ": ", why, "; it goes on without this link and tries again");
  v1::Event event = reporter_->New(fenced ? "failover" : unproven ? "link-unproven" : "link-up", text);
  event.set_monotonic_ns(when);
  event.set_time_ns(now.ToRealtime(when));
  event.set_nic(rail.nic());
  event.set_peer_node(peer_node);
  event.set_peer_nic(peer_nic);
  event.set_pid(job.pid());
  event.set_job(job.job());
  if (fenced) {
    event.set_cause(cause_name);
    event.set_replayed_bytes(record.replayed_bytes);
    event.set_duration_ns(static_cast<int64_t>(std::min<uint64_t>(record.duration_ns, INT64_MAX)));
  }
  if (unproven) event.set_cause(cause_name);
  // A link that cannot be opened reports that once a second.
  if ((!unproven || IsNews(id, record)) && MayReport(shares_[id])) reporter_->Report(std::move(event));

  // Records that waited for this daemon prove nothing about the present.
  if (rail.nic().empty() || now.monotonic_ns - when > kRecordAgeMax) return;
  health::JobReport::What what = health::JobReport::What::kLinkUp;
  if (fenced) what = health::JobReport::What::kLinkFenced;
  if (unproven) what = health::JobReport::What::kProofFailed;
  health::JobReport report = ReportOf(id, record, what);
  report.cause = CauseOf(cause);
  report.cause_text = plan::CauseText(cause, 0);
  report.lost = lost;
  Blame(record, report);
}

void JobService::NoteLoss(JobId id, const plan::EvidenceRecord& record, Nanos when) {
  const auto kind = static_cast<plan::EvidenceRecordKind>(record.kind);
  if (kind != plan::EvidenceRecordKind::kLinkLost && kind != plan::EvidenceRecordKind::kLinkFenced) return;
  if (!plan::MayBeOnPurpose(static_cast<plan::EvidenceCause>(record.cause))) return;
  const health::JobReport report = ReportOf(id, record, health::JobReport::What::kLinkFenced);
  const Loss loss{id, record.local_rail, when, reporter_->Now().monotonic_ns, {reporter_->node(), report.nic}, report.peer};
  if (!IsTaken(loss) && losses_.size() < kLossesMax) losses_.push_back(loss);
}

bool JobService::IsTaken(const Loss& loss) {
  if (!outputs_.taken(loss.own) && !outputs_.taken(loss.peer)) return false;
  registry_.NoteOnPurpose(loss.id, loss.rail, loss.when);
  return true;
}

void JobService::JudgeTaken() {
  const Nanos now = reporter_->Now().monotonic_ns;
  std::erase_if(losses_, [&](const Loss& loss) { return IsTaken(loss) || now - loss.received >= plan::kOnPurposeKnown; });
}

bool JobService::IsNews(JobId id, const plan::EvidenceRecord& record) {
  auto& known = unproven_[id];
  return known.size() < kUnprovenMax && known.emplace(record.local_rail, CleanText(record.peer_node, sizeof(record.peer_node))).second;
}

void JobService::Blame(const plan::EvidenceRecord& record, const health::JobReport& report) {
  const Nanos now = reporter_->Now().monotonic_ns;
  outputs_.evidence(health::JobEvidence(reporter_->node(), report, now));
  const bool carries_less =
      !report.lost.empty() || static_cast<plan::EvidenceRecordKind>(record.kind) == plan::EvidenceRecordKind::kProofFailed;
  if (!carries_less) return;
  Nanos& looked = looked_[report.nic];
  if (looked != 0 && now - looked < kLookIntervalMin) return;
  looked = now;
  outputs_.look(report.nic, report.peer);
}

// No event of its own: a job repeats itself each second, and the NIC's change of state is one.
void JobService::OnShare(JobId id, const plan::EvidenceRecord& record) {
  const bool slow = static_cast<plan::EvidenceRecordKind>(record.kind) == plan::EvidenceRecordKind::kRailSlow;
  health::JobReport report = ReportOf(id, record, slow ? health::JobReport::What::kRailSlow : health::JobReport::What::kRailSteady);
  report.share_permille = record.share_permille;
  if (const v1::Job* const job = registry_.Find(id); job != nullptr) report.uid = job->uid();
  report.only_user = registry_.HasOneUser();
  if (!report.nic.empty()) outputs_.evidence(health::JobEvidence(reporter_->node(), report, reporter_->Now().monotonic_ns));
}

void JobService::OnGaveUp(JobId id, const std::vector<plan::EvidenceRecord>& records) {
  std::map<std::string, std::vector<plan::EvidenceRecord>> by_peer;
  for (const plan::EvidenceRecord& record : records) {
    if (static_cast<plan::EvidenceRecordKind>(record.kind) != plan::EvidenceRecordKind::kGaveUp) continue;
    std::vector<plan::EvidenceRecord>& of_peer = by_peer[CleanText(record.peer_node, sizeof(record.peer_node))];
    if (of_peer.size() < plan::kAttachRailsMax) of_peer.push_back(record);
  }
  for (const auto& [peer, of_peer] : by_peer) ReportGaveUp(id, peer, of_peer);
}

void JobService::ReportGaveUp(JobId id, const std::string& peer, const std::vector<plan::EvidenceRecord>& records) {
  const v1::Job* const job = registry_.Find(id);
  if (job == nullptr || job->gave_up_size() >= JobRegistry::kGaveUpMax) return;
  const Moment now = reporter_->Now();
  v1::GaveUp kept;
  kept.set_peer_node(peer);
  kept.set_time_ns(now.realtime_ns);
  kept.set_lasted_ns(static_cast<int64_t>(std::min<uint64_t>(records.front().duration_ns, INT64_MAX)));
  plan::GaveUp gave_up{job->job().empty() ? "job" : job->job(), job->pid(), reporter_->node(), peer, kept.lasted_ns(), {}};
  for (const plan::EvidenceRecord& record : records) {
    if (record.bytes == plan::kNoRail || record.local_rail >= static_cast<uint32_t>(job->rails_size())) continue;
    const v1::RailTotals& rail = job->rails(static_cast<int>(record.local_rail));
    const auto cause = static_cast<plan::EvidenceCause>(record.cause);
    v1::GaveUp::Rail& one = *kept.add_rails();
    one.set_rail(rail.rail());
    one.set_nic(rail.nic());
    one.set_peer_nic(CleanText(record.peer_nic, sizeof(record.peer_nic)));
    one.set_cause(plan::CauseName(cause));
    one.set_since_ns(now.ToRealtime(std::clamp<Nanos>(record.time_ns, 0, now.monotonic_ns)));
    const auto dead_port =
        record.bytes <= static_cast<uint32_t>(plan::DeadPort::kOwn) ? static_cast<plan::DeadPort>(record.bytes) : plan::DeadPort::kNone;
    gave_up.rails.push_back(
        {rail.nic().empty() ? rail.rail() : rail.nic(), rail.nic(), one.peer_nic(), cause, plan::TimeOfDay(one.since_ns()), dead_port});
  }
  kept.set_text(plan::GaveUpText(gave_up));
  v1::Event event = reporter_->New("job-gave-up", kept.text());
  event.set_peer_node(peer);
  event.set_pid(job->pid());
  event.set_job(job->job());
  const bool may_report = MayReport(shares_[id]);
  registry_.GiveUp(id, std::move(kept));
  if (may_report) reporter_->Report(std::move(event));
}

health::JobReport JobService::ReportOf(JobId id, const plan::EvidenceRecord& record, health::JobReport::What what) const {
  const v1::Job& job = *registry_.Find(id);
  const std::string peer_node = CleanText(record.peer_node, sizeof(record.peer_node));
  const std::string peer_nic = CleanText(record.peer_nic, sizeof(record.peer_nic));
  health::JobReport report;
  report.what = what;
  report.job = JobName(job);
  report.nic = job.rails(static_cast<int>(record.local_rail)).nic();
  if (IsNodeName(peer_node) && IsNicName(peer_nic)) report.peer = {peer_node, peer_nic};
  report.when = TimeOf(record, reporter_->Now());
  return report;
}

void JobService::OnHeld(JobId id, const plan::EvidenceRecord& record, Nanos when) {
  const v1::Job& job = *registry_.Find(id);
  const v1::RailTotals& rail = job.rails(static_cast<int>(record.local_rail));
  HeldEvents::Fault report{.uid = job.uid(), .job = job.job(), .rail = rail.nic().empty() ? rail.rail() : rail.nic(), .lost = when};
  report.pid = job.pid();
  report.longest = HeldOf(record);
  report.share = shares_[id];
  held_events_.Note(report, reporter_->Now().monotonic_ns);
}

void JobService::ReportHeld() {
  const Moment now = reporter_->Now();
  for (const HeldEvents::Fault& fault : held_events_.TakeDue(now.monotonic_ns)) {
    std::string text = absl::StrCat(fault.job.empty() ? "job" : fault.job, " (pid ", fault.pid, "): the loss of ", fault.rail, " held up ",
                                    HeldText(fault.longest));
    if (fault.operations > 1) absl::StrAppend(&text, "; reports of this node: ", fault.operations);
    v1::Event event = reporter_->New("operation-held", text);
    event.set_nic(fault.rail);
    event.set_pid(fault.pid);
    event.set_job(fault.job);
    event.set_duration_ns(fault.longest.held_ns());
    if (MayReport(fault.share)) reporter_->Report(std::move(event));
  }
}

void JobService::OnEnd(JobId id) {
  const v1::Job* job = registry_.Find(id);
  if (job == nullptr) return;
  v1::Event event = reporter_->New("job-ended", absl::StrCat(JobName(*job), " ended"));
  event.set_pid(job->pid());
  event.set_job(job->job());
  const bool may_report = MayReport(shares_[id]);
  shares_.erase(id);
  JudgeTaken();
  registry_.Remove(id, reporter_->Now().realtime_ns);
  for (auto& [nic, processes] : moved_) processes.erase(id);
  unproven_.erase(id);
  hangs_.OnEnd(id);
  if (may_report) reporter_->Report(std::move(event));
}

std::vector<std::string> JobService::JobsOn(const std::string& nic, const std::string& name) const {
  std::vector<std::string> jobs;
  for (const v1::Job& job : registry_.Jobs())
    if ((name.empty() || job.job() == name) &&
        std::any_of(job.rails().begin(), job.rails().end(), [&](const v1::RailTotals& rail) { return rail.nic() == nic; }))
      jobs.push_back(absl::StrCat(job.job(), " (pid ", job.pid(), ")"));
  return jobs;
}

}  // namespace r2cc::daemon
