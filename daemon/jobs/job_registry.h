// Keeps the attached processes of jobs, and what they reported about their rails.
#ifndef R2CC_DAEMON_JOBS_JOB_REGISTRY_H_
#define R2CC_DAEMON_JOBS_JOB_REGISTRY_H_

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "daemon/core/job_peers.h"
#include "daemon/core/job_process.h"
#include "daemon/jobs/saved_runs.h"
#include "plan/page/attach.h"
#include "plan/page/ring.h"
#include "proto/r2cc.pb.h"

namespace r2cc::daemon {

// When something happened, by both clocks.
struct RecordTime {
  int64_t monotonic_ns = 0;
  int64_t realtime_ns = 0;
};

// Believes nothing: rail indices out of range are dropped, names are cleaned, everything is bounded. One thread at a time.
class JobRegistry {
 public:
  // Different nodes that one user's jobs talk to; of those beyond the daemon takes no notice.
  static constexpr size_t kPeersPerUserMax = 1024;
  // Names of peers, of some 200 bytes each, that the processes of one user keep together: as if each of 8 communicated with 1,024 nodes.
  // Those of all users take 26 MB. A process that comes later is shown without further peers; the daemon knows the nodes all the same.
  static constexpr size_t kPeerNamesPerUserMax = 8192;
  static constexpr size_t kPeerNamesMax = 131'072;

  // `nics`: for each rail the matched NIC or "".
  void Add(JobId id, const JobProcess& process, const plan::AttachRequest& request, std::vector<std::string> nics, int64_t now_realtime_ns);

  // Takes one record into the job's sums. False if the job is unknown, the record names a rail that it does not have, or Knows().
  bool Record(JobId id, const plan::EvidenceRecord& record);

  // It is a numbered record that these sums have already.
  bool Knows(JobId id, const plan::EvidenceRecord& record) const;

  // Faults that one process keeps: a flapping NIC makes many.
  static constexpr int kFaultsMax = 64;
  // Failed operations that one process keeps.
  static constexpr int kFailuresMax = 16;
  // Takes what the record reports about faults, at `when`. REQUIRES: Record() has taken it.
  void Note(JobId id, const plan::EvidenceRecord& record, const RecordTime& when);
  // The loss of this rail at this time, if Note() took one, was on purpose.
  void NoteOnPurpose(JobId id, uint32_t rail, int64_t monotonic_ns);

  // Whether anything that is kept over a restart has changed since the last call: a job that came or went, a fault, a failure.
  bool TakeChanged() { return std::exchange(changed_, false); }
  // Jobs that ended longer ago than this are forgotten.
  static constexpr int64_t kEndedAgeMaxNs = SavedRuns::kAgeMaxNs;
  v1::KeptJobs ToKeep(int64_t now_realtime_ns) const;
  // Takes the jobs that a former run kept. A job that was attached then counts as ended at the time of saving; it continues if its process
  // attaches again. Values out of bounds are not believed.
  void Restore(const v1::KeptJobs& kept, int64_t now_realtime_ns);

  void SetDropped(JobId id, uint64_t dropped);
  // Its requests make no progress; nothing: they do, or it has none.
  void SetWaiting(JobId id, std::optional<v1::JobWaiting> waiting);
  // Attached processes that hang.
  uint32_t Hanging() const {
    const auto hangs = [](const auto& entry) { return entry.second.job.waiting().hangs(); };
    return static_cast<uint32_t>(std::count_if(jobs_.begin(), jobs_.end(), hangs));
  }

  // Jobs that ended and are kept with their reports: the last kEndedPerUserMax of each share, kEndedMax of all. Those that gave up on a
  // peer have places of their own.
  static constexpr size_t kEndedMax = 256;
  static constexpr size_t kEndedPerUserMax = 64;
  // Peers that one process gives up on: one, mostly, as NCCL ends then.
  static constexpr int kGaveUpMax = 16;
  void GiveUp(JobId id, v1::GaveUp gave_up);
  const std::deque<v1::Job>& ended() const { return ended_; }
  const std::deque<v1::Job>& all_ended() const { return all_ended_; }
  // Runs of processes that are in neither list any more.
  const SavedRuns& saved() const { return saved_; }

  // True if it was there.
  bool Remove(JobId id, int64_t now_realtime_ns);

  // Null if unknown. Valid until the next Add or Remove.
  const v1::Job* Find(JobId id) const;

  const JobPeers& peers() const { return peers_; }

  size_t size() const { return jobs_.size(); }
  // All attached processes are of one user, or of one container.
  bool HasOneUser() const { return users_.size() <= 1; }
  // The number of attached processes whose plugin is of another release than `own`.
  uint32_t OfOtherReleases(const std::string& own) const;
  std::vector<v1::Job> Jobs() const;
  // Each attached process.
  template <typename Look>
  void ForEach(Look look) const {
    for (const auto& [id, entry] : jobs_) look(id, entry.job);
  }
  // The jobs that `request` asks for, as far as they fit into `bytes_max`: at least one, if there is one.
  v1::ListJobsReply Page(const v1::ListJobsRequest& request, size_t bytes_max) const;

 private:
  void KeepEnded(v1::Job job, std::deque<v1::Job>* kept);
  // The known facts of the same process, if it was attached before: removed from those that ended.
  std::optional<v1::Job> TakeKnown(const v1::Job& process);
  void NoteLost(v1::Job* job, const plan::EvidenceRecord& record, const RecordTime& when);
  void NotePassed(v1::Job* job, const plan::EvidenceRecord& record, const RecordTime& when);
  v1::Job::Fault* FaultAt(v1::Job* job, const std::string& rail, int64_t monotonic_ns) const;
  struct Entry {
    v1::Job job;
    std::set<std::string> peers;
    int64_t attached_ns = 0;  // by this connection
    bool has_totals = false;  // or was known from a connection before
  };
  // False: the user's jobs talk to too many nodes already.
  bool CountPeer(const std::string& share, const std::string& node);
  std::map<JobId, Entry> jobs_;
  bool changed_ = false;
  JobPeers peers_;
  std::deque<v1::Job> ended_;      // those that gave up on a peer, oldest first
  std::deque<v1::Job> all_ended_;  // all processes that ended
  SavedRuns saved_;
  // By share (JobProcess::share).
  std::map<std::string, std::map<std::string, size_t>> processes_;  // that talk to a node
  std::map<std::string, size_t> users_;                             // attached processes
  std::map<std::string, size_t> peer_names_;                        // that its processes keep
  size_t peer_names_in_all_ = 0;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_JOBS_JOB_REGISTRY_H_
