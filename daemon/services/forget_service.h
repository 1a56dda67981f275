// A node that has left is forgotten by all daemons: here, and at every node that this one knows.
#ifndef R2CC_DAEMON_SERVICES_FORGET_SERVICE_H_
#define R2CC_DAEMON_SERVICES_FORGET_SERVICE_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/executor.h"
#include "daemon/core/answer.h"
#include "daemon/core/caller.h"
#include "daemon/core/event_reporter.h"
#include "daemon/io/peer_transport.h"
#include "daemon/peers/peer_set.h"
#include "daemon/state/audit.h"
#include "health/view/cluster_view.h"

namespace r2cc::daemon {

// The core's thread only.
class ForgetService {
 public:
  // Daemons that are asked at the same time: one that does not answer costs seconds, and each may need a channel of its own.
  static constexpr size_t kAskedAtOnceMax = 32;
  // The caller gets by then what has come; the others are asked all the same. r2ccctl waits 10 s.
  static constexpr Nanos kAnswerAfter = 5 * kNanosPerSecond;
  // Nodes that the answer names as those that did not forget; the others are counted.
  static constexpr int kRefusalsShown = 8;

  struct Parts {
    Executor* executor;
    const health::ClusterView* view;
    PeerSet* peer_set;
    PeerTransport* peers;
    Audit* audit;
    EventReporter* reporter;
    std::function<absl::Status(const std::string& node)> unknown_node;
  };

  // The parts outlive it.
  explicit ForgetService(const Parts& parts) : parts_(parts) {}
  ~ForgetService() { *alive_ = false; }
  ForgetService(const ForgetService&) = delete;
  ForgetService& operator=(const ForgetService&) = delete;

  // Drops what this daemon knows of the node, unless it is alive, and asks every other daemon to do so, which judges itself whether
  // `caller` has the role there. A request that was forwarded stays here, and so does one with only_here. `may`: whether the caller has the
  // role here.
  void Forget(const v1::ForgetNodeRequest& request, const Caller& caller, const absl::Status& may, Answer<v1::ForgetNodeReply> answer);

 private:
  struct Round;
  absl::Status ForgetHere(const v1::ForgetNodeRequest& request, v1::ForgetNodeReply* reply);
  std::vector<std::string> Others(const std::string& node) const;
  void AskOthers(const std::shared_ptr<Round>& round);
  void OnAnswer(Round* round, const std::string& node, const absl::StatusOr<v1::ForgetNodeReply>& reply);
  void Finish(Round* round);

  const Parts parts_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_SERVICES_FORGET_SERVICE_H_
