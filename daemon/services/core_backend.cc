#include "daemon/services/core_backend.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/core/release.h"
#include "base/log.h"
#include "daemon/core/convert.h"
#include "daemon/core/speaker.h"
#include "daemon/page/plan_model.h"
#include "daemon/services/fleet_pages.h"
#include "daemon/services/release_counts.h"

namespace r2cc::daemon {
namespace {

// Views pushed to us and not yet looked at. A peer whose view is dropped sends it again with its next keep-alive.
constexpr size_t kReceivedMax = 4096;
constexpr Nanos kTooManyTold = 60 * kNanosPerSecond;
// Speakers whose allowance is remembered.
constexpr size_t kSpeakersMax = 16'384;

}  // namespace

CoreBackend::CoreBackend(std::string node, const Parts& parts, std::shared_ptr<const bool> alive)
    : node_(std::move(node)),
      parts_(parts),
      alive_(std::move(alive)),
      started_(parts_.core->Now()),
      received_(parts_.core, kReceivedMax, [this](Received received) {
        if (received.ended) return parts_.peer_set->StreamEnded(received.stream);
        const Caller& from = received.from;
        parts_.peer_set->Receive(received.view, {received.stream, from.address});
        if (!received.taken) return;
        // Who proves nothing is whom he says he is, at his address.
        const std::string said = absl::StrCat(from.address.substr(0, from.address.rfind(':')), " ", received.view.node());
        LetSpeak(from.name.empty() ? said : from.name, from, std::move(received.taken));
      }) {}

void CoreBackend::LetSpeak(const std::string& who, const Caller& from, std::function<void()> taken) {
  const Nanos now = parts_.core->Now();
  if (views_.size() >= kSpeakersMax && !views_.contains(who)) views_.clear();
  Views& views = views_.try_emplace(who, Views{{kViewsPerSecond, kViewsBurst}}).first->second;
  if (views.allowance.Take(now)) return taken();
  if (views.told == 0 || now - views.told >= kTooManyTold) {
    views.told = now;
    LogWarning("a node speaks more often than it is heard", {{"who", Describe(from)}, {"views_per_second", kViewsPerSecond}});
  }
  parts_.core->RunAfter(kNanosPerSecond / kViewsPerSecond, [this, alive = alive_, who, from, taken = std::move(taken)] {
    if (*alive) LetSpeak(who, from, taken);
  });
}

v1::NodeView CoreBackend::ShownNode(const health::NodeEntry& entry) const {
  // Without its pairs, of which it may have a thousand, and the key of its probes: those are for daemons, and people ask with ProbePaths.
  health::NodeState state;
  state.node = entry.state.node;
  state.epoch = entry.state.epoch;
  state.nics = entry.state.nics;
  state.rdma_ends = entry.state.rdma_ends;
  v1::NodeView shown = ToProto(state, parts_.view->StatusOf(entry), parts_.reporter->Now());
  const bool own = entry.state.node == node_;
  const PeerSet::About about = parts_.peer_set->AboutNode(entry.state.node);
  shown.set_peer_address(own ? *parts_.peer_address : about.peer_address);
  shown.set_release(own ? Release() : about.release);
  shown.set_jobs_of_other_releases(own ? parts_.jobs->registry().OfOtherReleases(Release()) : about.jobs_of_other_releases);
  if (about.clock_ahead_ns.has_value() && !own) shown.set_clock_ahead_ns(*about.clock_ahead_ns);
  return shown;
}

absl::Status CoreBackend::Judge(const Caller& caller, Role role, const std::string& what) const {
  absl::Status status = Allow(caller, role);
  if (!status.ok() && parts_.refusals != nullptr)
    parts_.refusals->Count(caller.kind == Caller::Kind::kLocal && !caller.forwarded() ? "control" : "peers", "role", Describe(caller),
                           absl::StrCat(what, ": ", status.message()));
  return status;
}

absl::Status CoreBackend::JudgeAction(const Caller& caller, const v1::NicActionRequest& request) const {
  // A drill is ended also where drills are not allowed any more, and by whoever steers.
  if (request.action() == v1::RESTORE && Allow(caller, Role::kOperate).ok()) return absl::OkStatus();
  const bool drill = request.action() == v1::FAIL || request.action() == v1::RESTORE;
  return Judge(caller, drill ? Role::kDrill : Role::kOperate, absl::StrCat(v1::NicAction_Name(request.action()), " of a NIC"));
}

void CoreBackend::AddReleases(v1::ClusterSummary* summary) const {
  ReleaseCounts counts;
  for (const auto& [node, entry] : parts_.view->nodes()) {
    if (node == node_) {
      counts.Add(node, Release(), parts_.jobs->registry().OfOtherReleases(Release()));
      continue;
    }
    const PeerSet::About about = parts_.peer_set->AboutNode(node);
    counts.Add(node, about.release, about.jobs_of_other_releases);
  }
  counts.PutInto(summary);
}

void CoreBackend::GetStatus(const v1::StatusRequest& request, Answer<v1::StatusReply> answer) {
  parts_.core->Post([this, alive = alive_, request, answer = std::move(answer)] {
    if (!*alive) return;
    const health::NodeEntry* const entry = parts_.view->Find(node_);
    const health::NodeState none;
    const health::NodeState& own = entry == nullptr ? none : entry->state;
    v1::StatusReply reply;
    reply.set_node(node_);
    reply.set_release(Release());
    *reply.mutable_plan_epoch() = ToProto(parts_.publisher->plan().epoch);
    if (request.health()) return answer(std::move(reply));
    reply.set_word(ToProto(own.status));
    *reply.mutable_epoch() = ToProto(own.epoch);
    reply.set_uptime_ns(parts_.core->Now() - started_);
    reply.set_jobs(static_cast<uint32_t>(parts_.jobs->registry().size()));
    AddStatusNodes(
        request, *parts_.view, [this](const health::NodeEntry& node) { return ShownNode(node); }, &reply);
    if (request.after_node().empty()) {
      for (auto& peer : parts_.peer_set->Peers()) *reply.add_peers() = std::move(peer);
      AddReleases(reply.mutable_summary());
    }
    reply.set_store(parts_.peer_set->store_state());
    for (std::string& alarm : parts_.publisher->Alarms()) reply.add_alarms(std::move(alarm));
    for (const auto& [file, alarm] : *parts_.state_alarms) reply.add_alarms(alarm);
    for (const RailAlarm& alarm : *parts_.rail_alarms) reply.add_alarms(alarm.text);
    for (std::string& alarm : parts_.reload->Alarms()) reply.add_alarms(std::move(alarm));
    if (const uint32_t hanging = parts_.jobs->registry().Hanging(); hanging > 0)
      reply.add_alarms(absl::StrCat(hanging, hanging == 1 ? " process of a job makes" : " processes of jobs make",
                                    " no progress: `r2ccctl jobs --bad` names what it waits for"));
    *reply.mutable_config() = parts_.reload->State();
    if (request.after_node().empty())
      for (const v1::Saved& saved : parts_.report->SavedHere()) *reply.add_saved() = saved;
    reply.set_attach_refused(parts_.jobs->refused());
    reply.set_insecure(parts_.insecure);
    if (parts_.refusals != nullptr)
      for (auto& refusal : parts_.refusals->List()) *reply.add_refusals() = std::move(refusal);
    answer(std::move(reply));
  });
}

void CoreBackend::ListNics(const v1::ListNicsRequest& request, Answer<v1::ListNicsReply> answer) {
  parts_.core->Post([this, alive = alive_, request, answer = std::move(answer)] {
    if (!*alive) return;
    if (!request.node().empty() && parts_.view->Find(request.node()) == nullptr)
      return answer(parts_.operators->UnknownNode(request.node()));
    answer(NicsPage(request, *parts_.view, [this](const health::NodeEntry& node) { return ShownNode(node); }));
  });
}

void CoreBackend::ActOnNic(const v1::NicActionRequest& request, const Caller& caller, Answer<v1::NicActionReply> answer) {
  parts_.core->Post([this, alive = alive_, request, caller, answer = std::move(answer)] {
    if (!*alive) return;
    const absl::Status may = request.node() == node_ ? JudgeAction(caller, request) : absl::OkStatus();
    parts_.operators->Act(request, caller, may, answer);
  });
}

void CoreBackend::ListJobs(const v1::ListJobsRequest& request, Answer<v1::ListJobsReply> answer) {
  parts_.core->Post([this, alive = alive_, request, answer = std::move(answer)] {
    if (!*alive) return;
    v1::ListJobsReply reply = parts_.jobs->registry().Page(request, kPageBytesMax);
    reply.set_release(Release());
    answer(std::move(reply));
  });
}

void CoreBackend::ReportJobs(const v1::ReportJobsRequest& request, const Caller& caller, Answer<v1::ReportJobsReply> answer) {
  parts_.core->Post([this, alive = alive_, request, caller, answer = std::move(answer)] {
    if (!*alive) return;
    if (const absl::Status status = Judge(caller, Role::kView, "to have jobs reported"); !status.ok()) return answer(status);
    parts_.report->Report(request, caller, answer);
  });
}

void CoreBackend::GetPlan(const v1::GetPlanRequest& request, Answer<v1::Plan> answer) {
  parts_.core->Post([this, alive = alive_, after = request.after_node(), answer = std::move(answer)] {
    if (!*alive) return;
    std::string next;
    v1::Plan page = ToProto(PlanPage(parts_.publisher->plan(), after, &next));
    page.set_next_after(next);
    answer(std::move(page));
  });
}

void CoreBackend::ExplainNic(const v1::ExplainNicRequest& request, const Caller& caller, Answer<v1::ExplainNicReply> answer) {
  parts_.core->Post([this, alive = alive_, request, caller, answer = std::move(answer)] {
    if (!*alive) return;
    if (request.node() == node_)
      if (const absl::Status status = Judge(caller, Role::kView, "to have a NIC explained"); !status.ok()) return answer(status);
    parts_.explain->ExplainNic(request, caller, answer);
  });
}

void CoreBackend::ProbePaths(const v1::ProbePathsRequest& request, const Caller& caller, Answer<v1::ProbePathsReply> answer) {
  parts_.core->Post([this, alive = alive_, request, caller, answer = std::move(answer)] {
    if (!*alive) return;
    if (request.node() == node_)
      if (const absl::Status status = Judge(caller, Role::kView, "to see probes"); !status.ok()) return answer(status);
    parts_.explain->ProbePaths(request, caller, answer);
  });
}

void CoreBackend::ExplainPlan(const v1::ExplainPlanRequest& request, Answer<v1::ExplainPlanReply> answer) {
  parts_.core->Post([this, alive = alive_, after = request.after_node(), answer = std::move(answer)] {
    if (*alive) answer(parts_.explain->ExplainPlan(after));
  });
}

void CoreBackend::ForgetNode(const v1::ForgetNodeRequest& request, const Caller& caller, Answer<v1::ForgetNodeReply> answer) {
  parts_.core->Post([this, alive = alive_, request, caller, answer = std::move(answer)] {
    if (*alive) parts_.forget->Forget(request, caller, Judge(caller, Role::kOperate, "to have a node forgotten"), answer);
  });
}

void CoreBackend::GetConfig(const v1::ConfigRequest& /*request*/, Answer<v1::ConfigReply> answer) {
  parts_.core->Post([this, alive = alive_, answer = std::move(answer)] {
    if (*alive) parts_.reload->Show(answer);
  });
}

void CoreBackend::GetMetrics(Answer<std::shared_ptr<const MetricFacts>> answer) {
  parts_.core->Post([this, alive = alive_, answer = std::move(answer)] {
    if (*alive) answer(std::make_shared<const MetricFacts>(parts_.metrics->Gather()));
  });
}

void CoreBackend::Reload(const v1::ReloadRequest& /*request*/, const Caller& caller, Answer<v1::ReloadReply> answer) {
  parts_.core->Post([this, alive = alive_, caller, answer = std::move(answer)] {
    if (*alive) parts_.reload->Reload(caller, Judge(caller, Role::kOperate, "to have the configuration read again"), answer);
  });
}

void CoreBackend::ReceiveView(v1::NodeView view, uint64_t stream, const Caller& from, std::function<void()> taken) {
  // Without room the speaker may say it again.
  if (!received_.Push({std::move(view), stream, from, false, taken}) && taken) taken();
}

// Behind the views that came by it. If there is no room, the stream is found to be silent a little later.
void CoreBackend::EndStream(uint64_t stream) { received_.Push({{}, stream, {}, true, nullptr}); }

}  // namespace r2cc::daemon
