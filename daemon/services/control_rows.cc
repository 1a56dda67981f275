#include "daemon/services/control_rows.h"

#include <functional>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/core/check.h"

namespace r2cc::daemon {
namespace {

using Where = Access::Where;

// Whether the daemon serves may be asked by everybody who is known.
Access AccessToStatus(const v1::StatusRequest& request) {
  if (request.health()) return {.what = "whether it serves", .judged = Where::kKnown};
  return {.what = "the status"};
}

Access AccessToAction(const v1::NicActionRequest& request) {
  const bool drill = request.action() == v1::FAIL || request.action() == v1::RESTORE;
  Access access{.what = "to act on a NIC",
                .role = drill ? Role::kDrill : Role::kOperate,
                .judged = Where::kOwner,
                .more_closely = absl::StrCat(v1::NicAction_Name(request.action()), " of a NIC")};
  // A drill is ended also where drills are not allowed any more, and by every caller that may steer.
  if (request.action() == v1::RESTORE) access.or_role = Role::kOperate;
  return access;
}

}  // namespace

void SetControlRows(const ControlServices& services, ControlTable* table) {
  const StatusService* const status = services.status;
  const ExplainService* const explain = services.explain;
  OperatorService* const operators = services.operators;
  ForgetService* const forget = services.forget;
  ReportService* const report = services.report;
  MetricsService* const metrics = services.metrics;
  ReloadService* const reload = services.reload;
  DisagreementService* const disagreement = services.disagreement;

  // Each node answers for itself, at once.
  table->Set<v1::StatusRequest>(std::function(AccessToStatus), [status](const auto& request) { return status->Status(request); });
  table->Set<v1::ListNicsRequest>(Access{.what = "the NICs"}, [status](const auto& request) { return status->ListNics(request); });
  table->Set<v1::ListJobsRequest>(Access{.what = "the jobs"}, [status](const auto& request) { return status->ListJobs(request); });
  table->Set<v1::GetPlanRequest>(Access{.what = "the plan"}, [status](const auto& request) { return status->GetPlan(request); });
  table->Set<v1::ExplainPlanRequest>(Access{.what = "the plan"},
                                     [explain](const auto& request) { return explain->ExplainPlan(request.after_node()); });
  table->Set<v1::ConfigRequest>(Access{.what = "the configuration"},
                                [reload](const auto&, const Caller&, auto answer) { reload->Show(std::move(answer)); });
  table->Set<MetricsRequest>(Access{.what = "the metrics"},
                             [metrics](const auto&) { return std::make_shared<const MetricFacts>(metrics->Gather()); });

  // The node that is asked judges, on its core.
  table->Set<v1::ReportJobsRequest>(
      Access{.what = "to have jobs reported", .role = Role::kView, .judged = Where::kHere},
      [report](const auto& request, const Caller& caller, auto answer) { report->Report(request, caller, std::move(answer)); });
  table->Set<v1::ForgetNodeRequest>(Access{.what = "to have a node forgotten", .role = Role::kOperate, .judged = Where::kHere},
                                    [forget](const auto& request, const Caller& caller, const absl::Status& may, auto answer) {
                                      forget->Forget(request, caller, may, std::move(answer));
                                    });
  table->Set<v1::ReloadRequest>(Access{.what = "to have the configuration read again", .role = Role::kOperate, .judged = Where::kHere},
                                [reload](const auto&, const Caller& caller, const absl::Status& may, auto answer) {
                                  reload->Reload(caller, may, std::move(answer));
                                });
  table->Set<v1::DisagreementRequest>(Access{.what = "to report that ranks disagree", .role = Role::kOperate, .judged = Where::kHere},
                                      [disagreement](const auto& request, const Caller& caller, const absl::Status& may, auto answer) {
                                        answer(disagreement->Report(request, caller, may));
                                      });

  // The node that the request names judges.
  table->Set<v1::NicActionRequest>(std::function(AccessToAction),
                                   [operators](const auto& request, const Caller& caller, const absl::Status& may, auto answer) {
                                     operators->Act(request, caller, may, std::move(answer));
                                   });
  table->Set<v1::ExplainNicRequest>(
      Access{.what = "to have a NIC explained", .role = Role::kView, .judged = Where::kOwner},
      [explain](const auto& request, const Caller& caller, auto answer) { explain->ExplainNic(request, caller, std::move(answer)); });
  table->Set<v1::ProbePathsRequest>(
      Access{.what = "to see probes", .role = Role::kView, .judged = Where::kOwner},
      [explain](const auto& request, const Caller& caller, auto answer) { explain->ProbePaths(request, caller, std::move(answer)); });

  R2CC_CHECK(table->complete());
}

}  // namespace r2cc::daemon
