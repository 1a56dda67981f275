// Wiring's answers to the operator and the peers.
#include <utility>

#include "daemon/wiring.h"

namespace r2cc::daemon {

v1::NodeView Wiring::ShownNode(const health::NodeEntry& entry) const {
  v1::NodeView shown = ToProto(entry.state, cluster_.WordOf(entry), journal_.Now());
  const bool own = entry.state.node == config_.node;
  const Neighbours::About about = neighbours_.AboutNode(entry.state.node);
  shown.set_peer_address(own ? peer_address_ : about.peer_address);
  shown.set_release(own ? kRelease : about.release);
  shown.clear_probe_nonce();
  return shown;
}

std::vector<v1::NodeView> Wiring::ShownNodes(const std::string& only) const {
  std::vector<v1::NodeView> shown;
  for (const auto& [name, entry] : cluster_.nodes())
    if (only.empty() || name == only) shown.push_back(ShownNode(entry));
  return shown;
}

void Wiring::GetStatus(Answer<v1::StatusReply> answer) {
  world_.core->Post([this, alive = alive_, answer = std::move(answer)] {
    if (!*alive) return;
    v1::StatusReply reply;
    reply.set_node(config_.node);
    reply.set_release(kRelease);
    reply.set_word(ToProto(own_.word));
    *reply.mutable_epoch() = ToProto(own_.epoch);
    *reply.mutable_plan_epoch() = ToProto(publisher_.plan().epoch);
    reply.set_uptime_ns(world_.core->Now() - started_);
    reply.set_jobs(static_cast<uint32_t>(jobs_.registry().size()));
    for (auto& node : ShownNodes("")) *reply.add_nodes() = std::move(node);
    for (auto& peer : neighbours_.Peers()) *reply.add_peers() = std::move(peer);
    reply.set_store(neighbours_.store_state());
    answer(std::move(reply));
  });
}

void Wiring::ListNics(const v1::ListNicsRequest& request, Answer<v1::ListNicsReply> answer) {
  world_.core->Post([this, alive = alive_, only = request.node(), answer = std::move(answer)] {
    if (!*alive) return;
    v1::ListNicsReply reply;
    for (auto& node : ShownNodes(only)) *reply.add_nodes() = std::move(node);
    if (!only.empty() && reply.nodes_size() == 0) return answer(operator_.UnknownNode(only));
    answer(std::move(reply));
  });
}

void Wiring::ActOnNic(const v1::NicActionRequest& request, Origin origin, Answer<v1::NicActionReply> answer) {
  world_.core->Post([this, alive = alive_, request, origin, answer = std::move(answer)] {
    if (*alive) operator_.Act(request, origin, answer);
  });
}

void Wiring::ListJobs(Answer<v1::ListJobsReply> answer) {
  world_.core->Post([this, alive = alive_, answer = std::move(answer)] {
    if (!*alive) return;
    v1::ListJobsReply reply;
    for (auto& job : jobs_.registry().Jobs()) *reply.add_jobs() = std::move(job);
    answer(std::move(reply));
  });
}

void Wiring::GetPlan(Answer<v1::Plan> answer) {
  world_.core->Post([this, alive = alive_, answer = std::move(answer)] {
    if (*alive) answer(ToProto(publisher_.plan()));
  });
}

void Wiring::ExplainNic(const v1::ExplainNicRequest& request, Origin origin, Answer<v1::ExplainNicReply> answer) {
  world_.core->Post([this, alive = alive_, request, origin, answer = std::move(answer)] {
    if (*alive) explain_.ExplainNic(request, origin, answer);
  });
}

void Wiring::ProbePaths(const v1::ProbePathsRequest& request, Origin origin, Answer<v1::ProbePathsReply> answer) {
  world_.core->Post([this, alive = alive_, request, origin, answer = std::move(answer)] {
    if (*alive) explain_.ProbePaths(request, origin, answer);
  });
}

void Wiring::ExplainPlan(Answer<v1::ExplainPlanReply> answer) {
  world_.core->Post([this, alive = alive_, answer = std::move(answer)] {
    if (*alive) answer(explain_.ExplainPlan());
  });
}

void Wiring::ReceiveView(v1::NodeView view, const std::string& from) { received_.Push({std::move(view), from}); }

}  // namespace r2cc::daemon
