// A core that answers from values, on a thread of its own.
#ifndef R2CC_DAEMON_HTTP_FAKE_BACKEND_H_
#define R2CC_DAEMON_HTTP_FAKE_BACKEND_H_

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "base/event_loop.h"
#include "daemon/metrics/facts.h"
#include "daemon/rpc/backend.h"

namespace r2cc::daemon {

class FakeBackend final : public Backend {
 public:
  // Set before anybody asks.
  v1::StatusReply status;
  v1::ListNicsReply nics;
  v1::ListJobsReply jobs;
  v1::Plan plan;
  MetricFacts metrics;
  // True: the core is stuck.
  std::atomic<bool> stuck = false;
  std::atomic<bool> view_allowed = true;
  std::atomic<int> asked_for_metrics = 0;
  std::atomic<int> asked_for_nics = 0;

  absl::Status Allow(const Caller&, Role) const override {
    return view_allowed ? absl::OkStatus() : absl::PermissionDeniedError("does not have the role VIEW");
  }
  void GetStatus(const v1::StatusRequest& request, Answer<v1::StatusReply> answer) override {
    v1::StatusReply reply = status;
    if (request.health()) reply.clear_nodes();
    Give(std::move(answer), reply);
  }
  void ListNics(const v1::ListNicsRequest& request, Answer<v1::ListNicsReply> answer) override {
    ++asked_for_nics;
    // A node is a page.
    v1::ListNicsReply page;
    for (const v1::NodeView& node : nics.nodes()) {
      if (node.node() <= request.after_node() || (!request.node().empty() && node.node() != request.node())) continue;
      if (page.nodes_size() == 1) {
        page.set_next_after(page.nodes(0).node());
        break;
      }
      *page.add_nodes() = node;
    }
    Give(std::move(answer), page);
  }
  void ListJobs(const v1::ListJobsRequest& request, Answer<v1::ListJobsReply> answer) override {
    v1::ListJobsReply page;
    if (static_cast<int>(request.skip()) < jobs.jobs_size()) *page.add_jobs() = jobs.jobs(static_cast<int>(request.skip()));
    page.set_more(static_cast<int>(request.skip()) + 1 < jobs.jobs_size());
    Give(std::move(answer), page);
  }
  void GetPlan(const v1::GetPlanRequest&, Answer<v1::Plan> answer) override { Give(std::move(answer), plan); }
  void GetMetrics(Answer<std::shared_ptr<const MetricFacts>> answer) override {
    ++asked_for_metrics;
    Give(std::move(answer), std::make_shared<const MetricFacts>(metrics));
  }
  void GetConfig(const v1::ConfigRequest&, Answer<v1::ConfigReply> answer) override { Give(std::move(answer), v1::ConfigReply()); }
  void ExplainPlan(const v1::ExplainPlanRequest&, Answer<v1::ExplainPlanReply> answer) override {
    Give(std::move(answer), v1::ExplainPlanReply());
  }
  void ExplainNic(const v1::ExplainNicRequest& request, const Caller&, Answer<v1::ExplainNicReply> answer) override {
    v1::ExplainNicReply reply;
    reply.set_verdict_text("of " + request.node() + "/" + request.nic());
    Give(std::move(answer), reply);
  }
  // HTTP asks none of these: an answer that is dropped is UNAVAILABLE.
  void ActOnNic(const v1::NicActionRequest&, const Caller&, Answer<v1::NicActionReply>) override {}
  void ReportJobs(const v1::ReportJobsRequest&, const Caller&, Answer<v1::ReportJobsReply>) override {}
  void ProbePaths(const v1::ProbePathsRequest&, const Caller&, Answer<v1::ProbePathsReply>) override {}
  void ForgetNode(const v1::ForgetNodeRequest&, const Caller&, Answer<v1::ForgetNodeReply>) override {}
  void Reload(const v1::ReloadRequest&, const Caller&, Answer<v1::ReloadReply>) override {}
  void ReceiveView(v1::NodeView, uint64_t, const Caller&, std::function<void()>) override {}
  void EndStream(uint64_t) override {}
  EventLog& events() override { return events_; }
  ViewBroadcaster& broadcaster() override { return broadcaster_; }

 private:
  template <typename Reply>
  void Give(Answer<Reply> answer, Reply reply) {
    core_.loop().Post([this, answer = std::move(answer), reply = std::move(reply)] {
      if (stuck)
        core_.loop().RunAfter(3600 * kNanosPerSecond, [answer] {});
      else
        answer(reply);
    });
  }
  EventLog events_;
  ViewBroadcaster broadcaster_;
  ScopedLoopThread core_{"fake-core"};
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_HTTP_FAKE_BACKEND_H_
