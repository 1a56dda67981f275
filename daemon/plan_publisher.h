// From the view to the page: makes the plan, checks it, publishes it, tells the jobs.
#ifndef R2CC_DAEMON_PLAN_PUBLISHER_H_
#define R2CC_DAEMON_PLAN_PUBLISHER_H_

#include <functional>
#include <string>
#include <utility>

#include "base/core/epoch.h"
#include "base/log.h"
#include "daemon/convert.h"
#include "daemon/event_reporter.h"
#include "daemon/io/attach_server.h"
#include "daemon/io/page_sink.h"
#include "health/view/cluster_view.h"
#include "plan/planner.h"

namespace r2cc::daemon {

// The core's thread only.
class PlanPublisher {
 public:
  // All outlive it.
  PlanPublisher(PageSink* page, AttachServer* jobs, EventReporter* reporter) : page_(page), jobs_(jobs), reporter_(reporter) {}

  // Publishes the plan for `view` unless it says what the published one says. Only what changed in the view since then is planned and
  // checked anew. A plan that is refused leaves the last good one in place; false: try again. `next_epoch` is asked only if there is
  // something to publish.
  bool Update(const health::ClusterView& view, const std::function<Epoch()>& next_epoch) {
    const plan::ClusterModel part = ToModel(view, revision_);
    const plan::Plan before = plan::PartOf(plan_, part);
    plan::Plan planned = plan::MakePlan(part, plan_.epoch);
    if (!published_ || !planned.SaysTheSame(before)) {
      planned.epoch = next_epoch();
      std::string wrong = plan::CheckPlan(planned, part);
      plan::Plan plan = plan::Replace(plan_, part, planned);
      if (wrong.empty())
        if (const auto status = page_->Publish(plan, reporter_->Now().monotonic_ns); !status.ok()) wrong = std::string(status.message());
      if (!wrong.empty()) {
        if (std::exchange(trouble_, wrong) != wrong) LogError("a plan was refused, the last good one stays", {{"reason", wrong}});
        return false;
      }
      jobs_->RingPageDoorbell();
      trouble_.clear();
      plan_ = std::move(plan);
      published_ = true;
      const std::string change = DescribeChange(before, planned);
      reporter_->Tell("plan-published", absl::StrCat("plan ", plan_.epoch.counter, ": ", change.empty() ? "no NICs" : change));
    }
    revision_ = view.revision();
    return true;
  }

  // Of the view that the published plan is for.
  uint64_t revision() const { return revision_; }
  // The published one.
  const plan::Plan& plan() const { return plan_; }
  // Why the newest plan was refused; empty: it is published.
  const std::string& trouble() const { return trouble_; }

 private:
  PageSink* const page_;
  AttachServer* const jobs_;
  EventReporter* const reporter_;
  plan::Plan plan_;
  uint64_t revision_ = 0;
  bool published_ = false;
  std::string trouble_;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_PLAN_PUBLISHER_H_
