// The interface over which views travel to and from the daemons of other nodes.
#ifndef R2CC_DAEMON_IO_PEER_TRANSPORT_H_
#define R2CC_DAEMON_IO_PEER_TRANSPORT_H_

#include <functional>
#include <string>
#include <vector>

#include "daemon/config/config.h"
#include "daemon/core/answer.h"
#include "daemon/core/view_broadcaster.h"
#include "proto/r2cc.pb.h"

namespace r2cc::daemon {

// The core's thread only. The callbacks come on the core's thread too.
class PeerTransport {
 public:
  struct Callbacks {
    // A whole view of `peer`, in answer to a push or because it changed.
    std::function<void(const std::string& peer, v1::NodeView view)> on_view;
    // The first answer after a time without connection.
    std::function<void(const std::string& peer)> on_connected;
    // The connection ended, or (each time that `why` changes) cannot be made. Attempts go on for ever.
    std::function<void(const std::string& peer, const std::string& why)> on_lost;
  };

  virtual ~PeerTransport() = default;

  // Once, and before the first peers. `broadcaster` outlives the transport.
  virtual void Start(ViewBroadcaster* broadcaster, Callbacks callbacks) = 0;

  // The peers from now on. Begins to connect to those that are new, and pushes each new view of the broadcaster to them; of those that are
  // gone no callback comes any more; those that stay at their address keep their connection.
  virtual void SetPeers(const std::vector<PeerSpec>& peers) = 0;

  // Has `peer` do something to one of its NICs, whether it is one of the peers or not; `peer.address` is where its daemon is to be found if
  // it is none. The answer comes within a bounded time: UNAVAILABLE, with one line that names node and address, if it cannot be reached.
  virtual void Act(const PeerSpec& peer, const v1::NicActionRequest& request, Answer<v1::NicActionReply> answer) = 0;

  // Has `peer` forget a node. As Act.
  virtual void ForgetNode(const PeerSpec& peer, const v1::ForgetNodeRequest& request, Answer<v1::ForgetNodeReply> answer) = 0;

  // Has `peer` explain what is its own. As Act.
  virtual void ExplainNic(const PeerSpec& peer, const v1::ExplainNicRequest& request, Answer<v1::ExplainNicReply> answer) = 0;
  virtual void ProbePaths(const PeerSpec& peer, const v1::ProbePathsRequest& request, Answer<v1::ProbePathsReply> answer) = 0;

  // Asks `peer` for what jobs met on its node. As Act.
  virtual void ReportJobs(const PeerSpec& peer, const v1::ReportJobsRequest& request, Answer<v1::ReportJobsReply> answer) = 0;

  // After this no callback comes any more, and the broadcaster is not used.
  virtual void Stop() = 0;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_IO_PEER_TRANSPORT_H_
