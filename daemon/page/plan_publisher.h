// Makes the plan from the view, checks it, publishes it on the page, and notifies the jobs.
#ifndef R2CC_DAEMON_PAGE_PLAN_PUBLISHER_H_
#define R2CC_DAEMON_PAGE_PLAN_PUBLISHER_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/core/epoch.h"
#include "base/log.h"
#include "daemon/core/event_reporter.h"
#include "daemon/core/job_peers.h"
#include "daemon/io/attach_server.h"
#include "daemon/io/page_sink.h"
#include "daemon/page/page_scope.h"
#include "daemon/page/plan_model.h"
#include "health/view/cluster_view.h"
#include "plan/planner.h"

namespace r2cc::daemon {

// The core's thread only.
class PlanPublisher {
 public:
  // All outlive it.
  PlanPublisher(PageSink* page, AttachServer* jobs, EventReporter* reporter) : page_(page), jobs_(jobs), reporter_(reporter) {}

  // The jobs' peers matter if the page has no room for all nodes.
  void SetJobPeers(const JobPeers& peers) {
    if (job_peers_ == peers) return;
    job_peers_ = peers;
    if (!scope_.all) scoped_places_ = revision_ = 0;
  }

  // Publishes the plan for `view` unless it equals the published one. Only what changed in the view since then is planned and checked
  // again. A plan that is refused leaves the last good one in place; false: try again. `next_epoch` is called only if there is something to
  // publish.
  bool Update(const health::ClusterView& view, const std::function<Epoch()>& next_epoch) {
    UpdateScope(view);
    // A part contains nothing about a node that is gone.
    if (std::exchange(forgotten_, view.forgotten()) != view.forgotten()) revision_ = 0;
    const bool all_new = revision_ == 0;
    const plan::ClusterModel part = ToModel(view, revision_, scope_, reporter_->node());
    const plan::Plan before = all_new ? plan_ : plan::PartOf(plan_, part);
    plan::Plan planned = plan::MakePlan(part, plan_.epoch);
    if (!published_ || !planned.HasSameContent(before)) {
      planned.epoch = next_epoch();
      std::string wrong = plan::CheckPlan(planned, part);
      plan::Plan plan = all_new ? planned : plan::Replace(plan_, part, planned);
      if (wrong.empty())
        if (const auto status = page_->Publish(plan, reporter_->node(), reporter_->Now().monotonic_ns); !status.ok())
          wrong = std::string(status.message());
      if (!wrong.empty()) {
        if (std::exchange(trouble_, wrong) != wrong)
          reporter_->Report("plan-refused", absl::StrCat("a plan was refused, the last good one stays: ", wrong));
        return false;
      }
      jobs_->RingPageDoorbell();
      trouble_.clear();
      plan_ = std::move(plan);
      published_ = true;
      const std::string change = DescribeChange(before, planned);
      reporter_->Report("plan-published", absl::StrCat("plan ", plan_.epoch.counter, ": ", change.empty() ? "no NICs" : change));
    }
    revision_ = view.revision();
    return true;
  }

  // The view's revision of the published plan.
  uint64_t revision() const { return revision_; }
  // The published one.
  const plan::Plan& plan() const { return plan_; }
  // Why the newest plan was refused; empty: it is published.
  const std::string& trouble() const { return trouble_; }
  // Conditions that need an operator, a line each.
  std::vector<std::string> Alarms() const {
    std::vector<std::string> alarms;
    if (!trouble_.empty()) alarms.push_back(absl::StrCat("the jobs' page does not follow the view: a plan was refused: ", trouble_));
    size_t job_drains = 0;
    for (const plan::PlannedNic& nic : plan_.nics) job_drains += nic.drained_jobs.size();
    if (job_drains > plan::kJobDrainsMax)
      alarms.push_back(absl::StrCat("the plan page is full: it leaves out ", job_drains - plan::kJobDrainsMax, " drains for single jobs"));
    const std::vector<plan::PageConflict> conflicts = page_->conflicts();
    for (size_t i = 0; i < conflicts.size() && i < kConflictsShown; ++i)
      alarms.push_back(
          absl::StrCat("node ", conflicts[i].node, " calls a NIC ", conflicts[i].nic, ", which has the hash of ", conflicts[i].other_node,
                       "/", conflicts[i].other_nic,
                       " on the plan page: plugins before 0.3.0 do not see it; rename it, or check which daemon has that node's name"));
    if (conflicts.size() > kConflictsShown)
      alarms.push_back(absl::StrCat("and ", conflicts.size() - kConflictsShown, " more NICs whose names have the hashes of others"));
    if (!scope_.all)
      alarms.push_back(absl::StrCat("the plan page is full: it leaves out ", scope_.left_out,
                                    " nodes without a job in common with this node, and ", scope_.left_out_of_jobs, " that jobs do"));
    return alarms;
  }

 private:
  static constexpr size_t kConflictsShown = 4;

  // The nodes or their NICs are others, or the jobs' peers are.
  void UpdateScope(const health::ClusterView& view) {
    if (std::exchange(scoped_places_, view.places()) == view.places()) return;
    PageScope scope = ChooseScope(view, reporter_->node(), job_peers_);
    if (scope == scope_) return;
    if (scope_.all) LogWarning("the plan page is full: it leaves nodes out", {{"nodes", scope.left_out + scope.left_out_of_jobs}});
    scope_ = std::move(scope);
    revision_ = 0;
  }

  PageSink* const page_;
  AttachServer* const jobs_;
  EventReporter* const reporter_;
  plan::Plan plan_;
  uint64_t revision_ = 0;   // 0: nothing of plan_ need stay
  uint64_t forgotten_ = 0;  // nodes of the view that plan_ is for
  JobPeers job_peers_;
  PageScope scope_;
  uint64_t scoped_places_ = 0;  // of the view that scope_ is for
  bool published_ = false;
  std::string trouble_;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_PAGE_PLAN_PUBLISHER_H_
