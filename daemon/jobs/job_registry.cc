#include "daemon/jobs/job_registry.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/core/clock.h"
#include "base/names.h"
#include "daemon/jobs/job_filter.h"

namespace r2cc::daemon {

void JobRegistry::Add(JobId id, const JobProcess& process, const plan::AttachRequest& request, std::vector<std::string> nics,
                      int64_t now_realtime_ns) {
  Entry entry;
  entry.job.set_pid(process.pid);
  entry.job.set_pid_claimed(process.pid_claimed);
  entry.job.set_uid(process.uid);
  entry.job.set_job(CleanText(request.job, sizeof(request.job)));
  entry.job.set_release(CleanText(request.release, sizeof(request.release)));
  entry.job.set_process_id(absl::StrFormat("%016x", request.process_id));
  entry.job.set_attached_ns(now_realtime_ns);
  const uint32_t rails = std::min(request.rail_count, plan::kAttachRailsMax);
  for (uint32_t i = 0; i < rails; ++i) {
    auto* rail = entry.job.add_rails();
    rail->set_rail(CleanText(request.rails[i].name, sizeof(request.rails[i].name)));
    if (i < nics.size()) rail->set_nic(nics[i]);
  }
  ++users_[process.uid];
  jobs_[id] = std::move(entry);
}

bool JobRegistry::Record(JobId id, const plan::EvidenceRecord& record) {
  const auto found = jobs_.find(id);
  if (found == jobs_.end() || record.local_rail >= static_cast<uint32_t>(found->second.job.rails_size())) return false;
  Entry& entry = found->second;
  auto* rail = entry.job.mutable_rails(static_cast<int>(record.local_rail));
  const std::string peer = CleanText(record.peer_node, sizeof(record.peer_node));
  if (!peer.empty() && !entry.peers.contains(peer) && CountPeer(entry.job.uid(), peer)) {
    entry.peers.insert(peer);
    entry.job.add_peer_nodes(peer);
  }
  switch (static_cast<plan::EvidenceKind>(record.kind)) {
    case plan::EvidenceKind::kLinkFenced: rail->set_failovers(rail->failovers() + 1); return true;
    case plan::EvidenceKind::kRailTotals:
      rail->set_sent_bytes(record.bytes);
      rail->set_received_bytes(record.received_bytes);
      rail->set_replayed_bytes(record.replayed_bytes);
      return true;
    case plan::EvidenceKind::kLinkUp:
    case plan::EvidenceKind::kFlowOpened:
    case plan::EvidenceKind::kRailSlow:
    case plan::EvidenceKind::kRailSteady:
    case plan::EvidenceKind::kGaveUp:
    case plan::EvidenceKind::kProofFailed: return true;
  }
  return false;
}

void JobRegistry::SetDropped(JobId id, uint64_t dropped) {
  const auto found = jobs_.find(id);
  if (found != jobs_.end()) found->second.job.set_evidence_dropped(dropped);
}

bool JobRegistry::CountPeer(uint32_t uid, const std::string& node) {
  if (peer_names_in_all_ >= kPeerNamesMax || peer_names_[uid] >= kPeerNamesPerUserMax) return false;
  auto& processes = processes_[uid];
  if (!processes.contains(node) && processes.size() >= kPeersPerUserMax) return false;
  ++peer_names_[uid];
  ++peer_names_in_all_;
  if (++processes[node] == 1) peers_[uid].insert(node);
  return true;
}

bool JobRegistry::Remove(JobId id, int64_t now_realtime_ns) {
  const auto found = jobs_.find(id);
  if (found == jobs_.end()) return false;
  const uint32_t uid = found->second.job.uid();
  if (--users_.at(uid) == 0) users_.erase(uid);
  auto& processes = processes_[uid];
  for (const std::string& node : found->second.peers)
    if (--processes.at(node) == 0) {
      processes.erase(node);
      peers_[uid].erase(node);
    }
  peer_names_[uid] -= found->second.peers.size();
  peer_names_in_all_ -= found->second.peers.size();
  if (processes.empty()) {
    peer_names_.erase(uid);
    processes_.erase(uid);
    peers_.erase(uid);
  }
  found->second.job.set_ended_ns(now_realtime_ns);
  if (found->second.job.gave_up_size() > 0) KeepEnded(found->second.job, &ended_);
  KeepEnded(std::move(found->second.job), &all_ended_);
  jobs_.erase(found);
  return true;
}

void JobRegistry::GiveUp(JobId id, v1::GaveUp gave_up) {
  const auto found = jobs_.find(id);
  if (found != jobs_.end() && found->second.job.gave_up_size() < kGaveUpMax) *found->second.job.add_gave_up() = std::move(gave_up);
}

void JobRegistry::NoteFault(JobId id, const plan::EvidenceRecord& record, int64_t when_realtime_ns) {
  const auto cause = static_cast<plan::EvidenceCause>(record.cause);
  // The plugin tidies up.
  if (cause == plan::EvidenceCause::kFlowClosed || cause == plan::EvidenceCause::kRetired) return;
  v1::Job& job = jobs_.at(id).job;
  const v1::RailTotals& rail = job.rails(static_cast<int>(record.local_rail));
  v1::Job::Fault* fault = nullptr;
  for (v1::Job::Fault& known : *job.mutable_faults())
    if (known.rail() == rail.rail() && std::abs(known.time_ns() - when_realtime_ns) <= kNanosPerSecond) fault = &known;
  if (fault == nullptr) {
    if (job.faults_size() >= kFaultsMax) return job.set_faults_untold(job.faults_untold() + 1);
    fault = job.add_faults();
    fault->set_rail(rail.rail());
    fault->set_nic(rail.nic());
    fault->set_cause(plan::CauseName(cause));
    fault->set_time_ns(when_realtime_ns);
  }
  fault->set_stall_ns(std::max(fault->stall_ns(), static_cast<int64_t>(std::min<uint64_t>(record.duration_ns, INT64_MAX))));
  fault->set_replayed_bytes(fault->replayed_bytes() + record.replayed_bytes);
  fault->set_links(fault->links() + 1);
}

void JobRegistry::KeepEnded(v1::Job job, std::deque<v1::Job>* kept) {
  const auto his = [uid = job.uid()](const v1::Job& other) { return other.uid() == uid; };
  if (static_cast<size_t>(std::count_if(kept->begin(), kept->end(), his)) >= kEndedPerUserMax)
    kept->erase(std::find_if(kept->begin(), kept->end(), his));
  kept->push_back(std::move(job));
  if (kept->size() > kEndedMax) kept->pop_front();
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
