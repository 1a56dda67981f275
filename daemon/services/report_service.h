// Reports what this node's jobs met, each whole: gathered from the daemons of all nodes that a job runs on.
#ifndef R2CC_DAEMON_SERVICES_REPORT_SERVICE_H_
#define R2CC_DAEMON_SERVICES_REPORT_SERVICE_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/core/token_bucket.h"
#include "base/executor.h"
#include "daemon/core/answer.h"
#include "daemon/core/caller.h"
#include "daemon/core/event_reporter.h"
#include "daemon/io/peer_transport.h"
#include "daemon/jobs/job_registry.h"
#include "daemon/peers/peer_set.h"
#include "health/view/cluster_view.h"
#include "proto/r2cc.pb.h"

namespace r2cc::daemon {

// The core's thread only.
class ReportService {
 public:
  // As of ForgetService.
  static constexpr size_t kAskedAtOnceMax = 32;
  // The caller gets by then what has come. r2ccctl waits 10 s.
  static constexpr Nanos kAnswerAfter = 5 * kNanosPerSecond;
  // Nodes without a report that the answer names; the others are counted.
  static constexpr int kMissingShown = 64;
  // Nodes of a job in the answer; at most 100 bytes each, and gRPC takes 4 MiB at once.
  static constexpr int kNodesShown = 8192;

  // A report goes through all processes of this node, and asks other nodes. Limits of one share: reports a second, reports at once, and
  // reports that ask others.
  static constexpr int kReportsPerSecond = 10;
  static constexpr int kReportsBurst = 30;
  static constexpr size_t kRoundsPerShareMax = 4;
  static constexpr size_t kRoundsMax = 32;
  // Runs of the whole cluster that are summed up; of some 300 bytes.
  static constexpr size_t kRunsMax = 16'384;
  // Going through all runs of this node takes up to milliseconds.
  static constexpr Nanos kSumsLast = 10 * kNanosPerSecond;

  struct Parts {
    Executor* executor;
    const JobRegistry* registry;
    const PeerSet* peer_set;
    PeerTransport* peers;
    const EventReporter* reporter;
    const health::ClusterView* view;
  };

  // The parts outlive it.
  explicit ReportService(const Parts& parts) : parts_(parts) {}
  ~ReportService() { *alive_ = false; }
  ReportService(const ReportService&) = delete;
  ReportService& operator=(const ReportService&) = delete;

  // The savings on this node, in the last 24 hours and in the last 30 days. At most kSumsLast old.
  const std::vector<v1::Saved>& SavedHere();

  // A request that was forwarded is answered for this node only.
  void Report(const v1::ReportJobsRequest& request, const Caller& caller, Answer<v1::ReportJobsReply> answer);

 private:
  struct Round;
  // OK, or why `share` may not ask now.
  absl::Status Admit(const std::string& share);
  void AskMore(const std::shared_ptr<Round>& round);
  void OnAnswer(Round* round, const std::string& node, const absl::StatusOr<v1::ReportJobsReply>& reply);
  void Finish(Round* round);

  const Parts parts_;
  std::map<std::string, TokenBucket> reports_;  // by share
  std::map<std::string, size_t> rounds_;        // reports that ask other nodes, by share
  size_t rounds_in_all_ = 0;
  std::vector<v1::Saved> saved_;
  Nanos saved_at_ = 0;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_SERVICES_REPORT_SERVICE_H_
