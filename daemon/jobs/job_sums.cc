#include "daemon/jobs/job_sums.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "base/names.h"
#include "daemon/jobs/held_operations.h"
#include "daemon/jobs/reduced_rails.h"

namespace r2cc::daemon {
namespace {

constexpr size_t kNameBytesMax = 64;
// plan::GaveUpText names some rails and a command.
constexpr size_t kLineBytesMax = 1024;
constexpr uint32_t kOpenLinksMost = 1 << 20;
// Clocks of two nodes agree that well, and processes of one run begin that far apart.
constexpr int64_t kSameTimeNs = 2'000'000'000;
// Times of which two can be compared without overflow.
constexpr int64_t kTimeMostNs = std::numeric_limits<int64_t>::max() / 4;

std::string Clean(const std::string& text, size_t bytes_max) { return CleanText(text.data(), std::min(text.size(), bytes_max)); }

int64_t Plus(int64_t a, int64_t b) {
  int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<int64_t>::max() : sum;
}

// By this node's clock.
int64_t Time(int64_t ns, int64_t ahead_ns) {
  return std::clamp<int64_t>(std::clamp<int64_t>(ns, 0, kTimeMostNs) - std::clamp(ahead_ns, -kTimeMostNs, kTimeMostNs), 0, kTimeMostNs);
}

void AddNodes(const v1::Job::Fault& from, v1::Job::Fault* to) {
  uint32_t more = to->nodes_more() + from.nodes_more();
  for (const std::string& node : from.nodes()) {
    if (std::find(to->nodes().begin(), to->nodes().end(), node) != to->nodes().end()) continue;
    if (to->nodes_size() < kFaultNodesMax)
      to->add_nodes(node);
    else
      ++more;
  }
  to->set_nodes_more(more);
}

void AddFault(const v1::Job::Fault& fault, v1::JobSums* sums) {
  v1::Job::Fault* same = nullptr;
  for (v1::Job::Fault& one : *sums->mutable_faults())
    if (one.nic() == fault.nic() && std::abs(one.time_ns() - fault.time_ns()) <= kOneFaultNs) same = &one;
  if (same == nullptr) {
    if (sums->faults_size() >= kSummedFaultsMax)
      sums->set_faults_untold(sums->faults_untold() + 1);
    else
      *sums->add_faults() = fault;
    return;
  }
  // The first sign of the highest rank names the cause.
  const bool earlier = fault.time_ns() < same->time_ns();
  const int rank = CauseRank(fault.cause()), known = CauseRank(same->cause());
  if (rank > known || (earlier && rank == known)) same->set_cause(fault.cause());
  same->set_on_purpose((same->on_purpose() || fault.on_purpose()) && CauseRank(same->cause()) < kFaultsCauseRank);
  if (earlier) same->set_time_ns(fault.time_ns());
  if (fault.stall_ns() > same->stall_ns()) {
    same->set_stall_ns(fault.stall_ns());
    same->set_stall_end_ns(fault.stall_end_ns());
  }
  same->set_open_links(same->open_links() + std::min(fault.open_links(), kOpenLinksMost));
  same->set_replayed_bytes(same->replayed_bytes() + fault.replayed_bytes());
  same->set_links(same->links() + fault.links());
  AddNodes(fault, same);
  AddAllHeld(fault, same);
}

void AddGaveUp(const std::string& line, v1::JobSums* sums) {
  if (sums->gave_up_size() < kGaveUpLinesMax)
    sums->add_gave_up(line);
  else
    sums->set_gave_up_more(sums->gave_up_more() + 1);
}

void GaveUpSince(int64_t begun_ns, v1::JobSums* sums) {
  sums->set_gave_up_begun_ns(sums->has_gave_up_begun_ns() ? std::min(sums->gave_up_begun_ns(), begun_ns) : begun_ns);
}

void AddFailure(const v1::JobFailure& failure, v1::JobSums* sums) {
  if (sums->failures_size() < kSummedFailuresMax)
    *sums->add_failures() = failure;
  else
    sums->set_failures_more(sums->failures_more() + 1);
}

void AddWay(const v1::AllReduceWay& way, v1::JobSums* sums) {
  if (sums->ways_size() < kSummedWaysMax) *sums->add_ways() = way;
}

void WatchedSince(int64_t ns, v1::JobSums* sums) { sums->set_watched_since_ns(std::max(sums->watched_since_ns(), ns)); }

// The run of (uid, job) that ran from `begun_ns` to `ended_ns`: of several the one with the most of that in common.
v1::ReportJobsReply::Whole* RunAt(uint32_t uid, const std::string& job, int64_t begun_ns, int64_t ended_ns, int64_t slack_ns,
                                  WholeJobs* jobs) {
  v1::ReportJobsReply::Whole* found = nullptr;
  int64_t most = -slack_ns;
  for (auto one = jobs->lower_bound({uid, job, ""}); one != jobs->end(); ++one) {
    if (std::get<0>(one->first) != uid || std::get<1>(one->first) != job) break;
    const v1::JobSums& sums = one->second.sums();
    const int64_t common = std::min(ended_ns, sums.ended_ns()) - std::max(begun_ns, sums.begun_ns());
    if (common >= most) {
      most = common;
      found = &one->second;
    }
  }
  return found;
}

v1::ReportJobsReply::Whole* RunOf(const v1::Job& process, int64_t ended_ns, WholeJobs* jobs) {
  if (process.run_is_shared()) return &(*jobs)[{process.uid(), process.job(), process.run()}];
  v1::ReportJobsReply::Whole* const found = RunAt(process.uid(), process.job(), process.attached_ns(), ended_ns, 0, jobs);
  if (found != nullptr && !found->sums().run_is_shared()) return found;
  return &(*jobs)[{process.uid(), process.job(), "@" + std::to_string(process.attached_ns()) + process.process_id()}];
}

void Ran(int64_t begun_ns, int64_t ended_ns, v1::JobSums* sums) {
  sums->set_begun_ns(sums->processes() == 0 ? begun_ns : std::min(sums->begun_ns(), begun_ns));
  sums->set_ended_ns(std::max(sums->ended_ns(), ended_ns));
}

}  // namespace

int CauseRank(const std::string& cause) {
  if (cause == "socket-error" || cause == "peer-fenced") return 0;
  return cause == "page-notice" || cause == "simulated" ? 1 : kFaultsCauseRank;
}

void AddProcess(const v1::Job& process, const std::string& node, int64_t now_ns, WholeJobs* jobs) {
  const int64_t ended_ns = process.ended_ns() == 0 ? now_ns : process.ended_ns();
  v1::ReportJobsReply::Whole& whole = *RunOf(process, ended_ns, jobs);
  v1::JobSums& sums = *whole.mutable_sums();
  v1::NodeOfJob& row = whole.nodes().empty() ? *whole.add_nodes() : *whole.mutable_nodes(0);
  row.set_node(node);
  sums.set_job(process.job());
  sums.set_uid(process.uid());
  if (sums.run().empty()) sums.set_run(process.run());
  sums.set_run_is_shared(process.run_is_shared());
  Ran(process.attached_ns(), ended_ns, &sums);
  sums.set_processes(sums.processes() + 1);
  sums.set_attached(sums.attached() + (process.ended_ns() == 0 ? 1 : 0));
  sums.set_running_ns(Plus(sums.running_ns(), std::max<int64_t>(ended_ns - process.attached_ns(), 0)));
  for (const v1::RailTotals& rail : process.rails()) {
    sums.set_sent_bytes(sums.sent_bytes() + rail.sent_bytes());
    sums.set_received_bytes(sums.received_bytes() + rail.received_bytes());
    sums.set_replayed_bytes(sums.replayed_bytes() + rail.replayed_bytes());
  }
  sums.set_faults_untold(sums.faults_untold() + process.faults_untold());
  for (v1::Job::Fault fault : process.faults()) {
    if (fault.nic().empty()) fault.set_nic(fault.rail());
    fault.set_stall_ns(std::clamp<int64_t>(fault.stall_ns(), 0, kStallMostNs));
    fault.add_nodes(node);
    for (v1::HeldOperation& held : *fault.mutable_held()) held.set_node(node);
    AddFault(fault, &sums);
  }
  for (const v1::GaveUp& gave_up : process.gave_up()) {
    AddGaveUp(gave_up.text(), &sums);
    int64_t begun_ns = Time(gave_up.time_ns(), gave_up.lasted_ns());
    for (const v1::GaveUp::Rail& rail : gave_up.rails())
      if (rail.since_ns() > 0) begun_ns = std::min(begun_ns, rail.since_ns());
    GaveUpSince(begun_ns, &sums);
  }
  for (v1::JobFailure failure : process.failures()) {
    failure.set_node(node);
    failure.set_rank_plus_one(process.rank_plus_one());
    AddFailure(failure, &sums);
  }
  for (v1::AllReduceWay way : process.ways()) {
    way.set_node(node);
    AddWay(way, &sums);
  }
  MergeReduced(process.reduced(), now_ns, sums.mutable_reduced());
  WatchedSince(process.watched_since_ns(), &sums);
  // A plugin that reports its run also reports its end.
  const bool silent = process.ended_ns() != 0 && !process.end_not_seen() && !process.ended_in_order() && process.says_run();
  if (silent) sums.set_ended_silently(sums.ended_silently() + 1);
  if (process.end_not_seen()) sums.set_ends_not_seen(sums.ends_not_seen() + 1);
  std::set<std::string> peers(whole.peer_nodes().begin(), whole.peer_nodes().end());
  for (const std::string& peer : process.peer_nodes())
    if (peers.insert(peer).second) whole.add_peer_nodes(peer);
  row.set_processes(sums.processes());
  row.set_attached(sums.attached());
  row.set_sent_bytes(sums.sent_bytes());
  row.set_received_bytes(sums.received_bytes());
  row.set_replayed_bytes(sums.replayed_bytes());
  row.set_faults(static_cast<uint32_t>(sums.faults_size()) + sums.faults_untold());
}

bool AddNode(const v1::ReportJobsReply::Whole& reported, const std::string& node, int64_t clock_ahead_ns, int64_t now_ns, WholeJobs* jobs) {
  const v1::JobSums& from = reported.sums();
  v1::ReportJobsReply::Whole* run = nullptr;
  if (const auto same = jobs->find({from.uid(), from.job(), from.run()}); from.run_is_shared() && same != jobs->end()) run = &same->second;
  if (!from.run_is_shared())
    run = RunAt(from.uid(), from.job(), Time(from.begun_ns(), clock_ahead_ns), Time(from.ended_ns(), clock_ahead_ns), kSameTimeNs, jobs);
  if (run == nullptr) return false;
  v1::ReportJobsReply::Whole& whole = *run;
  v1::JobSums& sums = *whole.mutable_sums();
  Ran(Time(from.begun_ns(), clock_ahead_ns), Time(from.ended_ns(), clock_ahead_ns), &sums);
  sums.set_processes(sums.processes() + from.processes());
  sums.set_attached(sums.attached() + from.attached());
  sums.set_running_ns(Plus(sums.running_ns(), std::max<int64_t>(from.running_ns(), 0)));
  sums.set_sent_bytes(sums.sent_bytes() + from.sent_bytes());
  sums.set_received_bytes(sums.received_bytes() + from.received_bytes());
  sums.set_replayed_bytes(sums.replayed_bytes() + from.replayed_bytes());
  sums.set_faults_untold(sums.faults_untold() + from.faults_untold());
  for (int i = 0; i < std::min(from.faults_size(), kSummedFaultsMax); ++i) {
    const v1::Job::Fault& fault_sums = from.faults(i);
    v1::Job::Fault fault;
    fault.set_nic(Clean(fault_sums.nic(), kNameBytesMax));
    fault.set_cause(Clean(fault_sums.cause(), kNameBytesMax));
    fault.set_time_ns(Time(fault_sums.time_ns(), clock_ahead_ns));
    fault.set_stall_ns(std::clamp<int64_t>(fault_sums.stall_ns(), 0, kStallMostNs));
    fault.set_replayed_bytes(fault_sums.replayed_bytes());
    fault.set_links(fault_sums.links());
    fault.set_open_links(fault_sums.open_links());
    fault.set_on_purpose(fault_sums.on_purpose());
    if (fault_sums.stall_end_ns() != 0) fault.set_stall_end_ns(Time(fault_sums.stall_end_ns(), clock_ahead_ns));
    fault.add_nodes(node);
    fault.set_held_more(fault_sums.held_more());
    for (int j = 0; j < std::min(fault_sums.held_size(), kHeldOperationsMax); ++j) {
      v1::HeldOperation& held = *fault.add_held() = CleanHeld(fault_sums.held(j));
      held.set_node(node);
    }
    AddFault(fault, &sums);
  }
  for (v1::JobFailure failure : from.failures()) {
    failure.set_node(node);
    failure.set_peer_node(Clean(failure.peer_node(), kNameBytesMax));
    failure.set_time_ns(Time(failure.time_ns(), clock_ahead_ns));
    AddFailure(failure, &sums);
  }
  sums.set_failures_more(sums.failures_more() + from.failures_more());
  for (v1::AllReduceWay way : from.ways()) {
    way.set_node(node);
    way.set_way(Clean(way.way(), kNameBytesMax));
    way.set_since_ns(Time(way.since_ns(), clock_ahead_ns));
    AddWay(way, &sums);
  }
  ReducedList reduced = from.reduced();
  for (v1::ReducedRails& one : reduced) {
    one.set_begun_ns(Time(one.begun_ns(), clock_ahead_ns));
    if (one.ended_ns() != 0) one.set_ended_ns(Time(one.ended_ns(), clock_ahead_ns));
  }
  MergeReduced(reduced, now_ns, sums.mutable_reduced());
  if (from.watched_since_ns() != 0) WatchedSince(Time(from.watched_since_ns(), clock_ahead_ns), &sums);
  sums.set_ended_silently(sums.ended_silently() + from.ended_silently());
  sums.set_ends_not_seen(sums.ends_not_seen() + from.ends_not_seen());
  for (const std::string& line : from.gave_up()) AddGaveUp(Clean(line, kLineBytesMax), &sums);
  sums.set_gave_up_more(sums.gave_up_more() + from.gave_up_more());
  if (from.has_gave_up_begun_ns()) GaveUpSince(Time(from.gave_up_begun_ns(), clock_ahead_ns), &sums);
  v1::NodeOfJob& row = *whole.add_nodes();
  row.set_node(node);
  row.set_processes(from.processes());
  row.set_attached(from.attached());
  row.set_sent_bytes(from.sent_bytes());
  row.set_received_bytes(from.received_bytes());
  row.set_replayed_bytes(from.replayed_bytes());
  row.set_faults(static_cast<uint32_t>(from.faults_size()) + from.faults_untold());
  return true;
}

void AddOrBegin(const v1::ReportJobsReply::Whole& reported, const std::string& node, int64_t clock_ahead_ns, int64_t now_ns,
                WholeJobs* jobs) {
  v1::ReportJobsReply::Whole clean = reported;
  v1::JobSums& from = *clean.mutable_sums();
  from.set_job(Clean(from.job(), kNameBytesMax));
  from.set_run(Clean(from.run(), kNameBytesMax));
  if (AddNode(clean, node, clock_ahead_ns, now_ns, jobs)) return;
  const int64_t begun_ns = Time(from.begun_ns(), clock_ahead_ns);
  const std::string run = from.run_is_shared() ? from.run() : "@" + std::to_string(begun_ns) + "/" + std::to_string(jobs->size());
  v1::JobSums& sums = *(*jobs)[{from.uid(), from.job(), run}].mutable_sums();
  sums.set_job(from.job());
  sums.set_uid(from.uid());
  sums.set_run(from.run());
  sums.set_run_is_shared(from.run_is_shared());
  sums.set_begun_ns(begun_ns);
  sums.set_ended_ns(Time(from.ended_ns(), clock_ahead_ns));
  AddNode(clean, node, clock_ahead_ns, now_ns, jobs);
}

}  // namespace r2cc::daemon
