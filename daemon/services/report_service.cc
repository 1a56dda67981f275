#include "daemon/services/report_service.h"

#include <algorithm>
#include <deque>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/names.h"
#include "daemon/jobs/job_filter.h"
#include "daemon/jobs/job_sums.h"
#include "daemon/services/fleet_pages.h"
#include "proto/job_account.h"

namespace r2cc::daemon {
namespace {

// Shares whose allowance is remembered.
constexpr size_t kSharesMax = 4096;
// Sums of costs stay finite.
constexpr int64_t kCostMostNs = 30 * 24 * 3600 * int64_t{1'000'000'000};
constexpr int64_t kDayNs = 24 * 3600 * int64_t{1'000'000'000};

std::string Line(const absl::Status& status) { return CleanText(status.message().data(), status.message().size()); }

// The assumed cost of one restart, at least and at most.
std::pair<RestartCost, RestartCost> CostsOf(const v1::ReportJobsRequest& request) {
  RestartCost low = kRestartCostLow, high = kRestartCostHigh;
  if (request.restart_ns() > 0) low.restart_ns = high.restart_ns = std::min(request.restart_ns(), kCostMostNs);
  if (request.checkpoint_ns() > 0) low.checkpoint_ns = high.checkpoint_ns = std::min(request.checkpoint_ns(), kCostMostNs);
  return {low, high};
}

v1::Saved Sum(const WholeJobs& jobs, int64_t since_ns, int64_t now_ns, const std::pair<RestartCost, RestartCost>& costs) {
  std::vector<const v1::JobSums*> runs;
  for (const auto& [key, whole] : jobs) runs.push_back(&whole.sums());
  return SavedBy(runs, since_ns, now_ns, costs.first, costs.second);
}

// Runs whose processes have no records of their own any more.
WholeJobs SavedRunsOf(const JobRegistry& registry, const std::string& node) {
  WholeJobs jobs = registry.saved().runs();
  for (auto& [key, whole] : jobs) {
    for (v1::NodeOfJob& row : *whole.mutable_nodes()) row.set_node(node);
    for (v1::Job::Fault& fault : *whole.mutable_sums()->mutable_faults()) {
      fault.clear_nodes();
      fault.add_nodes(node);
    }
    for (v1::JobFailure& failure : *whole.mutable_sums()->mutable_failures()) failure.set_node(node);
  }
  return jobs;
}

bool MetSomething(const v1::JobSums& sums, int64_t since_ns) {
  const bool something = sums.faults_size() > 0 || sums.failures_size() > 0 || sums.gave_up_size() > 0 || sums.reduced_size() > 0;
  return something && (sums.attached() > 0 || sums.ended_ns() >= since_ns);
}

// The jobs that the request is about, as this node's processes reported them.
WholeJobs Here(const JobRegistry& registry, const v1::ReportJobsRequest& request, const std::string& node, int64_t now_ns) {
  v1::ListJobsRequest wanted;
  wanted.set_job_glob(request.job_glob());
  std::vector<v1::Job> processes = registry.Jobs();
  processes.insert(processes.end(), registry.all_ended().begin(), registry.all_ended().end());
  std::erase_if(processes, [&](const v1::Job& process) { return !Wanted(wanted, process); });
  std::stable_sort(processes.begin(), processes.end(),
                   [](const v1::Job& a, const v1::Job& b) { return a.attached_ns() < b.attached_ns(); });
  WholeJobs jobs;
  if (request.since_ns() > 0) jobs = SavedRunsOf(registry, node);
  for (const v1::Job& process : processes) AddProcess(process, node, now_ns, &jobs);
  if (request.since_ns() > 0) std::erase_if(jobs, [&](const auto& run) { return !MetSomething(run.second.sums(), request.since_ns()); });
  return jobs;
}

}  // namespace

// The answer that one caller waits for.
struct ReportService::Round {
  v1::ReportJobsRequest request;
  Answer<v1::ReportJobsReply> answer;
  WholeJobs jobs;
  std::deque<std::string> to_ask = {};
  std::set<std::string> known = {};  // nodes that were asked or are to be
  size_t under_way = 0;
  std::set<std::string> waited_for = {};
  v1::ReportJobsReply reply = {};
  bool answered = false;
  std::string share = {};  // that it counts in; empty: it asks no others
  bool sums_up = false;    // the caller gets the savings, and no jobs

  void Ask(const google::protobuf::RepeatedPtrField<std::string>& nodes) {
    for (const std::string& node : nodes) AskNode(node);
  }
  void AskNode(const std::string& node) {
    if (IsNodeName(node) && known.size() < kNodesMost && known.insert(node).second) to_ask.push_back(node);
  }
  void Missing(const std::string& node, const std::string& why) {
    if (reply.missing_size() >= kMissingShown) return reply.set_missing_more(reply.missing_more() + 1);
    v1::ReportJobsReply::Missing& missing = *reply.add_missing();
    missing.set_node(node);
    missing.set_why(why);
  }
};

absl::Status ReportService::Admit(const std::string& share) {
  if (reports_.size() >= kSharesMax && !reports_.contains(share)) reports_.clear();
  TokenBucket& reports = reports_.try_emplace(share, kReportsPerSecond, kReportsBurst).first->second;
  if (reports.Take(parts_.reporter->Now().monotonic_ns)) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(share, " asks for more than ", kReportsPerSecond, " reports a second"));
}

void ReportService::Report(const v1::ReportJobsRequest& request, const Caller& caller, Answer<v1::ReportJobsReply> answer) {
  const std::string share = ShareOf(caller);
  if (const absl::Status status = Admit(share); !status.ok()) return answer(status);
  const std::string& own = parts_.reporter->node();
  auto round =
      std::make_shared<Round>(Round{request, std::move(answer), Here(*parts_.registry, request, own, parts_.reporter->Now().realtime_ns)});
  round->reply.set_node(own);
  round->sums_up = request.since_ns() > 0 && !caller.forwarded();
  if (caller.forwarded() || (round->sums_up && request.only_here())) return Finish(round.get());
  if (rounds_in_all_ >= kRoundsMax || (rounds_.contains(share) && rounds_.at(share) >= kRoundsPerShareMax))
    return round->answer(absl::ResourceExhaustedError("others wait for reports already: ask again in some seconds"));
  round->share = share;
  ++rounds_[share];
  ++rounds_in_all_;
  *round->request.mutable_asker() = ToAsker(caller, own);
  round->known.insert(own);
  if (round->sums_up)
    for (const auto& [node, entry] : parts_.view->nodes()) round->AskNode(node);
  else
    for (const auto& [key, whole] : round->jobs) round->Ask(whole.peer_nodes());
  for (auto& [key, whole] : round->jobs) whole.clear_peer_nodes();
  parts_.executor->RunAfter(kAnswerAfter, [this, alive = alive_, round] {
    if (*alive) Finish(round.get());
  });
  AskMore(round);
}

const std::vector<v1::Saved>& ReportService::SavedHere() {
  const Moment now = parts_.reporter->Now();
  if (!saved_.empty() && now.monotonic_ns - saved_at_ < kSumsLast) return saved_;
  saved_at_ = now.monotonic_ns;
  v1::ReportJobsRequest request;
  request.set_since_ns(std::max<int64_t>(now.realtime_ns - 30 * kDayNs, 1));
  const WholeJobs jobs = Here(*parts_.registry, request, parts_.reporter->node(), now.realtime_ns);
  saved_ = {Sum(jobs, now.realtime_ns - kDayNs, now.realtime_ns, CostsOf(request)),
            Sum(jobs, request.since_ns(), now.realtime_ns, CostsOf(request))};
  return saved_;
}

void ReportService::AskMore(const std::shared_ptr<Round>& round) {
  while (!round->answered && round->under_way < kAskedAtOnceMax && !round->to_ask.empty()) {
    const std::string node = std::move(round->to_ask.front());
    round->to_ask.pop_front();
    round->waited_for.insert(node);
    ++round->under_way;
    // The answer comes on any thread, and perhaps at once.
    const Answer<v1::ReportJobsReply> note = [this, alive = alive_, core = parts_.executor, round,
                                              node](const absl::StatusOr<v1::ReportJobsReply>& reply) {
      core->Post([this, alive, round, node, reply] {
        if (!*alive) return;
        --round->under_way;
        round->waited_for.erase(node);
        if (!round->answered) OnAnswer(round.get(), node, reply);
        AskMore(round);
      });
    };
    const absl::StatusOr<PeerSpec> peer = parts_.peer_set->FindSpec(node);
    if (peer.ok())
      parts_.peers->ReportJobs(*peer, round->request, note);
    else
      note(peer.status());
  }
  if (round->under_way == 0 && round->to_ask.empty()) Finish(round.get());
}

void ReportService::OnAnswer(Round* round, const std::string& node, const absl::StatusOr<v1::ReportJobsReply>& reply) {
  const PeerSet::About about = parts_.peer_set->AboutNode(node);
  if (!reply.ok()) return round->Missing(node, Line(reply.status()));
  if (round->sums_up) {
    uint32_t left_out = reply->jobs_left_out();
    for (const v1::ReportJobsReply::Whole& whole : reply->jobs())
      if (round->jobs.size() < kRunsMax)
        AddOrBegin(whole, node, about.clock_ahead_ns.value_or(0), parts_.reporter->Now().realtime_ns, &round->jobs);
      else
        ++left_out;
    return round->reply.set_jobs_left_out(round->reply.jobs_left_out() + left_out);
  }
  size_t known = 0;
  for (const v1::ReportJobsReply::Whole& whole : reply->jobs()) {
    if (!AddNode(whole, node, about.clock_ahead_ns.value_or(0), parts_.reporter->Now().realtime_ns, &round->jobs)) continue;
    ++known;
    round->Ask(whole.peer_nodes());
  }
  if (reply->jobs_left_out() > 0)
    round->Missing(node, absl::StrCat(reply->jobs_left_out(), " of its jobs had no place in its answer: name the job"));
  else if (known == 0)
    round->Missing(node, "its r2ccd knows nothing of it: it ran no process of it, or its state directory was lost");
}

void ReportService::Finish(Round* round) {
  if (std::exchange(round->answered, true)) return;
  if (const auto found = rounds_.find(round->share); found != rounds_.end()) {
    if (--found->second == 0) rounds_.erase(found);
    --rounds_in_all_;
  }
  for (const std::string& node : round->waited_for)
    round->Missing(node, absl::StrCat("it has not answered within ", kAnswerAfter / kNanosPerSecond, " s"));
  for (const std::string& node : round->to_ask) round->Missing(node, "there was no time left to ask it");
  if (round->sums_up) {
    *round->reply.mutable_saved() =
        Sum(round->jobs, round->request.since_ns(), parts_.reporter->Now().realtime_ns, CostsOf(round->request));
    return round->answer(std::move(round->reply));
  }
  size_t bytes = 0;
  for (auto& [key, whole] : round->jobs) {
    std::sort(whole.mutable_nodes()->begin(), whole.mutable_nodes()->end(),
              [](const v1::NodeOfJob& a, const v1::NodeOfJob& b) { return a.node() < b.node(); });
    if (const int beyond = whole.nodes_size() - kNodesShown; beyond > 0) {
      whole.set_nodes_more(static_cast<uint32_t>(beyond));
      whole.mutable_nodes()->DeleteSubrange(kNodesShown, beyond);
    }
    if (bytes >= kPageBytesMax) {
      round->reply.set_jobs_left_out(round->reply.jobs_left_out() + 1);
      continue;
    }
    bytes += whole.ByteSizeLong();
    *round->reply.add_jobs() = std::move(whole);
  }
  round->answer(std::move(round->reply));
}

}  // namespace r2cc::daemon
