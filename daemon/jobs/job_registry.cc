#include "daemon/jobs/job_registry.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/core/clock.h"
#include "base/names.h"
#include "daemon/jobs/held_operations.h"
#include "daemon/jobs/job_filter.h"
#include "daemon/jobs/job_sums.h"
#include "daemon/jobs/job_ways.h"
#include "daemon/jobs/kept_job.h"
#include "daemon/jobs/reduced_rails.h"

namespace r2cc::daemon {
namespace {

// A process that has none cannot be known again.
constexpr char kNoProcessId[] = "0000000000000000";

}  // namespace

void JobRegistry::Add(JobId id, const JobProcess& process, const plan::AttachRequest& request, std::vector<std::string> nics,
                      int64_t now_realtime_ns) {
  Entry entry;
  entry.job.set_pid(process.pid);
  entry.job.set_pid_claimed(process.pid_claimed);
  entry.job.set_uid(process.uid);
  entry.job.set_share(process.share.empty() ? ShareOfUser(process.uid) : process.share);
  entry.job.set_job(CleanText(request.job, sizeof(request.job)));
  entry.job.set_release(CleanText(request.release, sizeof(request.release)));
  entry.job.set_process_id(absl::StrFormat("%016x", request.process_id));
  entry.job.set_attached_ns(now_realtime_ns);
  entry.attached_ns = now_realtime_ns;
  const uint32_t rails = std::min(request.rail_count, plan::kAttachRailsMax);
  for (uint32_t i = 0; i < rails; ++i) {
    auto* rail = entry.job.add_rails();
    rail->set_rail(CleanText(request.rails[i].name, sizeof(request.rails[i].name)));
    if (i < nics.size()) rail->set_nic(nics[i]);
  }
  ++users_[entry.job.share()];
  changed_ = true;
  // It was attached before: to a former run of the daemon, mostly.
  if (std::optional<v1::Job> known = TakeKnown(entry.job); known.has_value()) {
    known->set_pid(entry.job.pid());
    known->set_pid_claimed(entry.job.pid_claimed());
    known->set_release(entry.job.release());
    for (v1::RailTotals& rail : *entry.job.mutable_rails())
      for (const v1::RailTotals& before : known->rails())
        if (before.rail() == rail.rail()) rail.set_failovers(before.failovers());
    *known->mutable_rails() = entry.job.rails();
    known->clear_ended_ns();
    known->clear_end_not_seen();
    known->clear_ended_in_order();
    known->clear_waiting();
    entry.job = *std::move(known);
    entry.has_totals = true;
  }
  jobs_[id] = std::move(entry);
}

bool JobRegistry::Knows(JobId id, const plan::EvidenceRecord& record) const {
  const uint64_t number = record.received_bytes;
  const auto found = jobs_.find(id);
  return found != jobs_.end() && number != 0 && plan::IsNumbered(static_cast<plan::EvidenceRecordKind>(record.kind)) &&
         number <= found->second.job.numbered_through();
}

bool JobRegistry::Record(JobId id, const plan::EvidenceRecord& record) {
  const auto found = jobs_.find(id);
  if (found == jobs_.end() || Knows(id, record)) return false;
  Entry& entry = found->second;
  const auto kind = static_cast<plan::EvidenceRecordKind>(record.kind);
  if (const uint64_t number = record.received_bytes; plan::IsNumbered(kind) && number != 0) {
    // The plugin keeps the last ones only.
    if (number > entry.job.numbered_through() + 1 && entry.job.evidence_dropped() == 0) entry.job.set_watched_since_ns(entry.attached_ns);
    entry.job.set_numbered_through(number);
  }
  if (record.local_rail >= static_cast<uint32_t>(entry.job.rails_size())) return false;
  auto* rail = entry.job.mutable_rails(static_cast<int>(record.local_rail));
  const std::string peer = CleanText(record.peer_node, sizeof(record.peer_node));
  const bool names_peer = kind != plan::EvidenceRecordKind::kRun && kind != plan::EvidenceRecordKind::kOperationHeld;
  if (names_peer && !peer.empty() && !entry.peers.contains(peer) && CountPeer(entry.job.share(), peer)) {
    entry.peers.insert(peer);
    const auto& known = entry.job.peer_nodes();
    if (std::find(known.begin(), known.end(), peer) == known.end()) entry.job.add_peer_nodes(peer);
  }
  switch (kind) {
    case plan::EvidenceRecordKind::kLinkFenced: rail->set_failovers(rail->failovers() + 1); return true;
    case plan::EvidenceRecordKind::kRailTotals:
      // A plugin of 0.2.0 does not report when it began. One that has moved something by its first record began before.
      if (!std::exchange(entry.has_totals, true) && !entry.job.says_run() && record.bytes > 0)
        entry.job.set_watched_since_ns(entry.attached_ns);
      rail->set_sent_bytes(record.bytes);
      rail->set_received_bytes(record.received_bytes);
      rail->set_replayed_bytes(record.replayed_bytes);
      return true;
    case plan::EvidenceRecordKind::kLinkUp:
    case plan::EvidenceRecordKind::kFlowOpened:
    case plan::EvidenceRecordKind::kRailSlow:
    case plan::EvidenceRecordKind::kRailSteady:
    case plan::EvidenceRecordKind::kGaveUp:
    case plan::EvidenceRecordKind::kProofFailed:
    case plan::EvidenceRecordKind::kLinkLost:
    case plan::EvidenceRecordKind::kLinkPassed:
    case plan::EvidenceRecordKind::kRailUse:
    case plan::EvidenceRecordKind::kRun:
    case plan::EvidenceRecordKind::kFailed:
    case plan::EvidenceRecordKind::kEnding:
    case plan::EvidenceRecordKind::kWaiting:
    case plan::EvidenceRecordKind::kOperationHeld:
    case plan::EvidenceRecordKind::kWay: return true;
  }
  return false;
}

void JobRegistry::SetDropped(JobId id, uint64_t dropped) {
  const auto found = jobs_.find(id);
  if (found != jobs_.end()) found->second.job.set_evidence_dropped(dropped);
}

void JobRegistry::SetWaiting(JobId id, std::optional<v1::JobWaiting> waiting) {
  const auto found = jobs_.find(id);
  if (found == jobs_.end()) return;
  if (waiting.has_value())
    *found->second.job.mutable_waiting() = *std::move(waiting);
  else
    found->second.job.clear_waiting();
}

bool JobRegistry::CountPeer(const std::string& share, const std::string& node) {
  if (peer_names_in_all_ >= kPeerNamesMax || peer_names_[share] >= kPeerNamesPerUserMax) return false;
  auto& processes = processes_[share];
  if (!processes.contains(node) && processes.size() >= kPeersPerUserMax) return false;
  ++peer_names_[share];
  ++peer_names_in_all_;
  if (++processes[node] == 1) peers_[share].insert(node);
  return true;
}

bool JobRegistry::Remove(JobId id, int64_t now_realtime_ns) {
  const auto found = jobs_.find(id);
  if (found == jobs_.end()) return false;
  const std::string share = found->second.job.share();
  if (--users_.at(share) == 0) users_.erase(share);
  auto& processes = processes_[share];
  for (const std::string& node : found->second.peers)
    if (--processes.at(node) == 0) {
      processes.erase(node);
      peers_[share].erase(node);
    }
  peer_names_[share] -= found->second.peers.size();
  peer_names_in_all_ -= found->second.peers.size();
  if (processes.empty()) {
    peer_names_.erase(share);
    processes_.erase(share);
    peers_.erase(share);
  }
  found->second.job.set_ended_ns(now_realtime_ns);
  EndReduced(now_realtime_ns, found->second.job.mutable_reduced());
  saved_.Forget(now_realtime_ns);
  changed_ = true;
  if (found->second.job.gave_up_size() > 0) KeepEnded(found->second.job, &ended_);
  KeepEnded(std::move(found->second.job), &all_ended_);
  jobs_.erase(found);
  return true;
}

void JobRegistry::GiveUp(JobId id, v1::GaveUp gave_up) {
  const auto found = jobs_.find(id);
  if (found == jobs_.end() || found->second.job.gave_up_size() >= kGaveUpMax) return;
  *found->second.job.add_gave_up() = std::move(gave_up);
  changed_ = true;
}

v1::Job::Fault* JobRegistry::FaultAt(v1::Job* job, const std::string& rail, int64_t monotonic_ns) const {
  v1::Job::Fault* found = nullptr;
  for (v1::Job::Fault& known : *job->mutable_faults())
    if (known.rail() == rail && std::abs(known.monotonic_ns() - monotonic_ns) <= kNanosPerSecond) found = &known;
  return found;
}

// A plugin of 0.2.0 reports a link when the peer has ended it, and nothing else: `record` has no number.
void JobRegistry::NoteLost(v1::Job* job, const plan::EvidenceRecord& record, const RecordTime& when) {
  const auto cause = static_cast<plan::EvidenceCause>(record.cause);
  // The plugin tidies up.
  if (cause == plan::EvidenceCause::kFlowClosed || cause == plan::EvidenceCause::kRetired) return;
  const v1::RailTotals& rail = job->rails(static_cast<int>(record.local_rail));
  v1::Job::Fault* fault = FaultAt(job, rail.rail(), when.monotonic_ns);
  if (fault == nullptr) {
    if (job->faults_size() >= kFaultsMax) return job->set_faults_untold(job->faults_untold() + 1);
    fault = job->add_faults();
    fault->set_rail(rail.rail());
    fault->set_nic(rail.nic());
    fault->set_cause(plan::CauseName(cause));
    fault->set_time_ns(when.realtime_ns);
    fault->set_monotonic_ns(when.monotonic_ns);
  } else if (CauseRank(plan::CauseName(cause)) > CauseRank(fault->cause())) {
    fault->set_cause(plan::CauseName(cause));
  }
  fault->set_on_purpose((fault->on_purpose() || cause == plan::EvidenceCause::kSimulated) && CauseRank(fault->cause()) < kFaultsCauseRank);
  fault->set_links(fault->links() + 1);
  if (static_cast<plan::EvidenceRecordKind>(record.kind) == plan::EvidenceRecordKind::kLinkLost)
    return fault->set_open_links(fault->open_links() + 1);
  fault->set_stall_ns(std::max(fault->stall_ns(), static_cast<int64_t>(std::min<uint64_t>(record.duration_ns, INT64_MAX))));
  fault->set_replayed_bytes(fault->replayed_bytes() + record.replayed_bytes);
}

void JobRegistry::NoteOnPurpose(JobId id, uint32_t rail, int64_t monotonic_ns) {
  const auto found = jobs_.find(id);
  if (found == jobs_.end() || rail >= static_cast<uint32_t>(found->second.job.rails_size())) return;
  v1::Job& job = found->second.job;
  v1::Job::Fault* const fault = FaultAt(&job, job.rails(static_cast<int>(rail)).rail(), monotonic_ns);
  if (fault == nullptr || CauseRank(fault->cause()) >= kFaultsCauseRank) return;
  fault->set_on_purpose(true);
  changed_ = true;
}

void JobRegistry::NotePassed(v1::Job* job, const plan::EvidenceRecord& record, const RecordTime& when) {
  const v1::RailTotals& rail = job->rails(static_cast<int>(record.local_rail));
  const auto since = static_cast<int64_t>(std::min<uint64_t>(record.bytes, INT64_MAX));
  v1::Job::Fault* const fault = FaultAt(job, rail.rail(), when.monotonic_ns - since);
  if (fault == nullptr) return;
  if (fault->open_links() > 0) fault->set_open_links(fault->open_links() - 1);
  const auto stall = static_cast<int64_t>(std::min<uint64_t>(record.duration_ns, INT64_MAX));
  if (stall <= fault->stall_ns()) return;
  fault->set_stall_ns(stall);
  fault->set_stall_end_ns(when.realtime_ns);
}

void JobRegistry::Note(JobId id, const plan::EvidenceRecord& record, const RecordTime& when) {
  v1::Job& job = jobs_.at(id).job;
  switch (static_cast<plan::EvidenceRecordKind>(record.kind)) {
    case plan::EvidenceRecordKind::kLinkLost: NoteLost(&job, record, when); break;
    case plan::EvidenceRecordKind::kLinkFenced: {
      if (record.received_bytes == 0) {
        NoteLost(&job, record, when);
        break;
      }
      const auto since = static_cast<int64_t>(std::min<uint64_t>(record.duration_ns, INT64_MAX));
      v1::Job::Fault* const fault = FaultAt(&job, job.rails(static_cast<int>(record.local_rail)).rail(), when.monotonic_ns - since);
      if (fault != nullptr) fault->set_replayed_bytes(fault->replayed_bytes() + record.replayed_bytes);
      break;
    }
    case plan::EvidenceRecordKind::kLinkPassed: NotePassed(&job, record, when); break;
    case plan::EvidenceRecordKind::kOperationHeld:
      AddHeld(HeldOf(record), FaultAt(&job, job.rails(static_cast<int>(record.local_rail)).rail(), when.monotonic_ns));
      break;
    case plan::EvidenceRecordKind::kRailUse:
      NoteUse(static_cast<uint32_t>(std::min<uint64_t>(record.bytes, UINT32_MAX)),
              static_cast<uint32_t>(std::min<uint64_t>(record.replayed_bytes, UINT32_MAX)), when.realtime_ns, job.mutable_reduced());
      break;
    case plan::EvidenceRecordKind::kFailed: {
      if (job.failures_size() >= kFailuresMax) return;
      v1::JobFailure& failure = *job.add_failures();
      failure.set_peer_node(CleanText(record.peer_node, sizeof(record.peer_node)));
      failure.set_failure(static_cast<uint32_t>(std::min<uint64_t>(record.bytes, UINT32_MAX)));
      failure.set_time_ns(when.realtime_ns);
      break;
    }
    case plan::EvidenceRecordKind::kRun:
      job.set_says_run(true);
      job.set_run(CleanText(record.peer_node, sizeof(record.peer_node)));
      job.set_run_is_shared(!job.run().empty() && record.replayed_bytes == 1);
      job.set_rank_plus_one(static_cast<uint32_t>(std::min<uint64_t>(record.bytes, UINT32_MAX)));
      // Events before the first attachment are in the numbered records.
      job.set_attached_ns(std::min(job.attached_ns(), when.realtime_ns));
      break;
    case plan::EvidenceRecordKind::kEnding: job.set_ended_in_order(true); break;
    case plan::EvidenceRecordKind::kWay: NoteWay(record, when.realtime_ns, &job); break;
    case plan::EvidenceRecordKind::kLinkUp:
    case plan::EvidenceRecordKind::kRailTotals:
    case plan::EvidenceRecordKind::kFlowOpened:
    case plan::EvidenceRecordKind::kRailSlow:
    case plan::EvidenceRecordKind::kRailSteady:
    case plan::EvidenceRecordKind::kGaveUp:
    case plan::EvidenceRecordKind::kProofFailed:
    case plan::EvidenceRecordKind::kWaiting: return;
  }
  changed_ = true;
}

std::optional<v1::Job> JobRegistry::TakeKnown(const v1::Job& process) {
  const auto same = [&](const v1::Job& other) {
    return process.process_id() != kNoProcessId && other.process_id() == process.process_id() && other.uid() == process.uid() &&
           other.share() == process.share() && other.pid() == process.pid() && other.job() == process.job();
  };
  const auto known = std::find_if(all_ended_.begin(), all_ended_.end(), same);
  if (known == all_ended_.end()) return std::nullopt;
  v1::Job job = std::move(*known);
  all_ended_.erase(known);
  std::erase_if(ended_, same);
  return job;
}

v1::KeptJobs JobRegistry::ToKeep(int64_t now_realtime_ns) const {
  v1::KeptJobs kept;
  kept.set_saved_ns(now_realtime_ns);
  for (const auto& [id, entry] : jobs_) *kept.add_attached() = entry.job;
  for (const v1::Job& job : all_ended_) *kept.add_ended() = job;
  for (const v1::Job& job : ended_) *kept.add_gave_up() = job;
  saved_.ToKeep(&kept);
  return kept;
}

void JobRegistry::Restore(const v1::KeptJobs& kept, int64_t now_realtime_ns) {
  const auto restore = [&](v1::Job job, std::deque<v1::Job>* to) {
    if (job.share().empty()) job.set_share(ShareOfUser(job.uid()));  // of a release before 0.3.0
    job.set_ended_ns(std::clamp<int64_t>(job.ended_ns(), 1, std::max<int64_t>(now_realtime_ns, 1)));
    if (now_realtime_ns - job.ended_ns() <= kEndedAgeMaxNs) KeepEnded(Cleaned(std::move(job)), to);
  };
  saved_.Restore(kept, now_realtime_ns);
  for (const v1::Job& job : kept.ended()) restore(job, &all_ended_);
  for (const v1::Job& job : kept.gave_up()) restore(job, &ended_);
  for (v1::Job job : kept.attached()) {
    job.set_ended_ns(kept.saved_ns());
    job.set_end_not_seen(true);
    restore(std::move(job), &all_ended_);
  }
}

void JobRegistry::KeepEnded(v1::Job job, std::deque<v1::Job>* kept) {
  const auto his = [share = job.share()](const v1::Job& other) { return other.share() == share; };
  const auto drop = [&](std::deque<v1::Job>::iterator oldest) {
    if (kept == &all_ended_) saved_.Add(*oldest);
    kept->erase(oldest);
  };
  if (static_cast<size_t>(std::count_if(kept->begin(), kept->end(), his)) >= kEndedPerUserMax)
    drop(std::find_if(kept->begin(), kept->end(), his));
  kept->push_back(std::move(job));
  if (kept->size() > kEndedMax) drop(kept->begin());
}

const v1::Job* JobRegistry::Find(JobId id) const {
  const auto found = jobs_.find(id);
  return found == jobs_.end() ? nullptr : &found->second.job;
}

v1::ListJobsReply JobRegistry::Page(const v1::ListJobsRequest& request, size_t bytes_max) const {
  v1::ListJobsReply reply;
  size_t index = 0;
  size_t bytes = 0;
  std::set<uint32_t> users;
  v1::ListJobsReply::Summary summary;
  const auto add = [&](const v1::Job& job) {
    summary.set_processes(summary.processes() + 1);
    summary.set_bad(summary.bad() + (IsBad(job) ? 1 : 0));
    users.insert(job.uid());
    if (!Wanted(request, job) || index++ < request.skip() || reply.more()) return;
    if (bytes >= bytes_max) return reply.set_more(true);
    bytes += job.ByteSizeLong();
    *reply.add_jobs() = job;
  };
  if (request.ended() || request.all_ended())
    for (const v1::Job& job : request.all_ended() ? all_ended_ : ended_) add(job);
  else
    for (const auto& [id, entry] : jobs_) add(entry.job);
  summary.set_users(static_cast<uint32_t>(users.size()));
  if (request.skip() == 0) *reply.mutable_summary() = summary;
  return reply;
}

uint32_t JobRegistry::OfOtherReleases(const std::string& own) const {
  return static_cast<uint32_t>(
      std::count_if(jobs_.begin(), jobs_.end(), [&](const auto& entry) { return entry.second.job.release() != own; }));
}

std::vector<v1::Job> JobRegistry::Jobs() const {
  std::vector<v1::Job> jobs;
  for (const auto& [id, entry] : jobs_) jobs.push_back(entry.job);
  return jobs;
}

}  // namespace r2cc::daemon
