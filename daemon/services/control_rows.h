// Fills the table of what may be asked of the daemon.
#ifndef R2CC_DAEMON_SERVICES_CONTROL_ROWS_H_
#define R2CC_DAEMON_SERVICES_CONTROL_ROWS_H_

#include "daemon/core/control_table.h"
#include "daemon/reload/reload_service.h"
#include "daemon/services/disagreement_service.h"
#include "daemon/services/explain_service.h"
#include "daemon/services/forget_service.h"
#include "daemon/services/metrics_service.h"
#include "daemon/services/operator_service.h"
#include "daemon/services/report_service.h"
#include "daemon/services/status_service.h"

namespace r2cc::daemon {

// The services behind the requests.
struct ControlServices {
  const StatusService* status;
  OperatorService* operators;
  ForgetService* forget;
  ReportService* report;
  const ExplainService* explain;
  MetricsService* metrics;
  ReloadService* reload;
  DisagreementService* disagreement;
};

// Sets all rows. The services outlive the table.
void SetControlRows(const ControlServices& services, ControlTable* table);

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_SERVICES_CONTROL_ROWS_H_
