#include "daemon/services/status_service.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/core/release.h"
#include "daemon/core/convert.h"
#include "daemon/page/plan_model.h"
#include "daemon/services/fleet_pages.h"
#include "daemon/services/release_counts.h"

namespace r2cc::daemon {

v1::NodeView StatusService::ShownNode(const health::NodeEntry& entry) const {
  // Without its pairs, of which it may have a thousand, and the key of its probes: those are for daemons, and people ask with ProbePaths.
  health::NodeState state;
  state.node = entry.state.node;
  state.epoch = entry.state.epoch;
  state.nics = entry.state.nics;
  state.rdma_ends = entry.state.rdma_ends;
  v1::NodeView shown = ToProto(state, parts_.view->StatusOf(entry), parts_.reporter->Now());
  const bool own = entry.state.node == parts_.node;
  const PeerSet::About about = parts_.peer_set->AboutNode(entry.state.node);
  shown.set_peer_address(own ? *parts_.peer_address : about.peer_address);
  shown.set_release(own ? Release() : about.release);
  shown.set_jobs_of_other_releases(own ? parts_.jobs->registry().OfOtherReleases(Release()) : about.jobs_of_other_releases);
  if (about.clock_ahead_ns.has_value() && !own) shown.set_clock_ahead_ns(*about.clock_ahead_ns);
  return shown;
}

void StatusService::AddReleases(v1::ClusterSummary* summary) const {
  ReleaseCounts counts;
  for (const auto& [node, entry] : parts_.view->nodes()) {
    if (node == parts_.node) {
      counts.Add(node, Release(), parts_.jobs->registry().OfOtherReleases(Release()));
      continue;
    }
    const PeerSet::About about = parts_.peer_set->AboutNode(node);
    counts.Add(node, about.release, about.jobs_of_other_releases);
  }
  counts.PutInto(summary);
}

v1::StatusReply StatusService::Status(const v1::StatusRequest& request) const {
  const health::NodeEntry* const entry = parts_.view->Find(parts_.node);
  const health::NodeState none;
  const health::NodeState& own = entry == nullptr ? none : entry->state;
  v1::StatusReply reply;
  reply.set_node(parts_.node);
  reply.set_release(Release());
  *reply.mutable_plan_epoch() = ToProto(parts_.publisher->plan().epoch);
  if (request.health()) return reply;
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
  return reply;
}

absl::StatusOr<v1::ListNicsReply> StatusService::ListNics(const v1::ListNicsRequest& request) const {
  if (!request.node().empty() && parts_.view->Find(request.node()) == nullptr) return parts_.operators->UnknownNode(request.node());
  return NicsPage(request, *parts_.view, [this](const health::NodeEntry& node) { return ShownNode(node); });
}

v1::ListJobsReply StatusService::ListJobs(const v1::ListJobsRequest& request) const {
  v1::ListJobsReply reply = parts_.jobs->registry().Page(request, kPageBytesMax);
  reply.set_release(Release());
  return reply;
}

v1::Plan StatusService::GetPlan(const v1::GetPlanRequest& request) const {
  std::string next;
  v1::Plan page = ToProto(PlanPage(parts_.publisher->plan(), request.after_node(), &next));
  page.set_next_after(next);
  return page;
}

}  // namespace r2cc::daemon
