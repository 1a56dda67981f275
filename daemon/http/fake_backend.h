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

  FakeBackend() {
    Give<v1::StatusRequest>([this](const v1::StatusRequest& request) {
      v1::StatusReply reply = status;
      if (request.health()) reply.clear_nodes();
      return reply;
    });
    Give<v1::ListNicsRequest>([this](const v1::ListNicsRequest& request) {
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
      return page;
    });
    Give<v1::ListJobsRequest>([this](const v1::ListJobsRequest& request) {
      v1::ListJobsReply page;
      if (static_cast<int>(request.skip()) < jobs.jobs_size()) *page.add_jobs() = jobs.jobs(static_cast<int>(request.skip()));
      page.set_more(static_cast<int>(request.skip()) + 1 < jobs.jobs_size());
      return page;
    });
    Give<v1::GetPlanRequest>([this](const v1::GetPlanRequest&) { return plan; });
    Give<MetricsRequest>([this](const MetricsRequest&) {
      ++asked_for_metrics;
      return std::make_shared<const MetricFacts>(metrics);
    });
    Give<v1::ConfigRequest>([](const v1::ConfigRequest&) { return v1::ConfigReply(); });
    Give<v1::ExplainPlanRequest>([](const v1::ExplainPlanRequest&) { return v1::ExplainPlanReply(); });
    Give<v1::ExplainNicRequest>([](const v1::ExplainNicRequest& request) {
      v1::ExplainNicReply reply;
      reply.set_verdict_text("of " + request.node() + "/" + request.nic());
      return reply;
    });
  }

  ~FakeBackend() override { core_.reset(); }

  // HTTP asks nothing that has no row: an answer that is dropped is UNAVAILABLE.
  const ControlTable& control() const override { return control_; }
  void ReceiveView(v1::NodeView, uint64_t, const Caller&, std::function<void()>) override {}
  void EndStream(uint64_t) override {}
  EventLog& events() override { return events_; }
  ViewBroadcaster& broadcaster() override { return broadcaster_; }

 private:
  // On the core: answers with what `make` makes of the request, unless the core is stuck.
  template <typename Request, typename Make>
  void Give(Make make) {
    control_.Set<Request>(Access(), [this, make](const Request& request, const Caller&, Answer<ReplyTo<Request>> answer) {
      auto reply = make(request);
      if (stuck)
        loop_->RunAfter(3600 * kNanosPerSecond, [answer] {});
      else
        answer(std::move(reply));
    });
  }
  EventLog events_;
  ViewBroadcaster broadcaster_;
  // It ends before the table that its tasks use.
  std::unique_ptr<ScopedLoopThread> core_ = std::make_unique<ScopedLoopThread>("fake-core");
  EventLoop* const loop_ = &core_->loop();
  ControlTable control_{
      {.node = "n0",
       .core = loop_,
       .alive = std::make_shared<const bool>(true),
       .allow = [this](const Caller&,
                       Role) { return view_allowed ? absl::OkStatus() : absl::PermissionDeniedError("does not have the role VIEW"); },
       .on_refused = nullptr}};
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_HTTP_FAKE_BACKEND_H_
