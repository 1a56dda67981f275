// Peer transport over gRPC: one Exchange stream to each peer.
#ifndef R2CC_DAEMON_RPC_GRPC_PEER_TRANSPORT_H_
#define R2CC_DAEMON_RPC_GRPC_PEER_TRANSPORT_H_

#include <memory>
#include <string>
#include <vector>

#include "base/executor.h"
#include "daemon/config/config.h"
#include "daemon/core/view_broadcaster.h"
#include "daemon/io/peer_transport.h"
#include "daemon/rpc/channel.h"

namespace r2cc::daemon {

class GrpcPeerTransport final : public PeerTransport {
 public:
  // `executor` (the core's) outlives the transport.
  GrpcPeerTransport(Executor* executor, Credentials credentials);
  ~GrpcPeerTransport() override;

  void Start(ViewBroadcaster* broadcaster, Callbacks callbacks) override;
  void SetPeers(const std::vector<PeerSpec>& peers) override;
  void Act(const PeerSpec& peer, const v1::NicActionRequest& request, Answer<v1::NicActionReply> answer) override;
  void ForgetNode(const PeerSpec& peer, const v1::ForgetNodeRequest& request, Answer<v1::ForgetNodeReply> answer) override;
  void ExplainNic(const PeerSpec& peer, const v1::ExplainNicRequest& request, Answer<v1::ExplainNicReply> answer) override;
  void ProbePaths(const PeerSpec& peer, const v1::ProbePathsRequest& request, Answer<v1::ProbePathsReply> answer) override;
  void ReportJobs(const PeerSpec& peer, const v1::ReportJobsRequest& request, Answer<v1::ReportJobsReply> answer) override;
  // Cancels every call and waits until it has ended, which is a matter of milliseconds.
  void Stop() override;

 private:
  class Link;
  class ExchangeCall;
  // The link to `peer`, or one for a single request.
  Link* LinkTo(const PeerSpec& peer);

  Executor* const executor_;
  const Credentials credentials_;
  ViewBroadcaster* broadcaster_ = nullptr;
  Callbacks callbacks_;
  std::vector<std::unique_ptr<Link>> links_;
  std::vector<std::unique_ptr<Link>> ended_;  // to peers that are none, until gRPC is done with their calls
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_RPC_GRPC_PEER_TRANSPORT_H_
