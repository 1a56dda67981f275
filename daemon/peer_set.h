// Merges what the other nodes say into the one view, over whatever way it comes: a peer's stream, our stream to it, the store.
#ifndef R2CC_DAEMON_PEER_SET_H_
#define R2CC_DAEMON_PEER_SET_H_

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "daemon/config.h"
#include "daemon/event_reporter.h"
#include "daemon/io/peer_transport.h"
#include "daemon/io/store.h"
#include "daemon/jobs/job_peers.h"
#include "daemon/trust/name_claims.h"
#include "health/view/cluster_view.h"

namespace r2cc::daemon {

// The core's thread only.
class PeerSet {
 public:
  // Nodes of jobs that this daemon calls beside the configuration's, shared among the jobs' users; those beyond hear of it through the
  // store.
  static constexpr size_t kJobPeersMax = 64;

  struct Outputs {
    // What another node's state means for our own NICs.
    std::function<void(const std::vector<health::Evidence>&)> evidence;
    std::function<void()> on_view;
    // A daemon's view came from itself, and not through the store.
    std::function<void(const std::string& node)> on_heard;
  };

  // All outlive it.
  PeerSet(const Config& config, health::ClusterView* view, EventReporter* reporter, Outputs outputs);

  PeerTransport::Callbacks PeerCallbacks();
  Store::Callbacks StoreCallbacks();

  // A view that its own daemon pushed to us; `from` is for the log.
  void Receive(const v1::NodeView& message, const std::string& from);

  // What this daemon says of itself, as it was last told.
  void SetOwn(const v1::NodeView& own) { own_ = Speaks(own, ""); }

  // Lets leases run out, and keeps alive the nodes that the store still has.
  void Tick();

  // The peers that this daemon talks to directly: those of the configuration, and the nodes of its jobs whose addresses the store or
  // others have told. One stream carries the views of both nodes, so the node with the lesser name calls the other.
  std::vector<PeerSpec> DirectPeers(const JobPeers& job_peers);

  bool IsPeer(const std::string& node) const { return peers_.contains(node); }
  std::vector<v1::PeerStatus> Peers() const;
  const std::string& store_state() const { return store_state_; }
  // What the view does not hold of a node: where its daemon is, and its release.
  struct About {
    std::string peer_address;
    std::string release;
  };
  About AboutNode(const std::string& node) const;

 private:
  struct Peer {
    std::string address;
    bool configured = false;
    bool connected = false;
    std::string error = "not connected yet";
  };
  std::set<std::string> Called(const JobPeers& job_peers) const;
  void OnPeerView(const std::string& peer, const v1::NodeView& message);
  void OnConnected(const std::string& peer);
  void OnLost(const std::string& peer, const std::string& why);
  void OnStoreChange(const StoreChange& change);
  void OnStoreState(const std::string& state);
  // The store has `node`, or had it until now. Its lease there is a sign of life.
  void HearOf(const std::string& node);
  // False: it is refused, or outdated.
  bool Take(const v1::NodeView& message, const std::string& from);
  static NameClaims::Speaker Speaks(const v1::NodeView& message, const std::string& from);
  // False: another daemon has the name.
  bool HasName(const v1::NodeView& message, const std::string& from);
  void TellSecond(const std::string& node, const NameClaims::Speaker& one, const NameClaims::Speaker& other);
  // Told once per sender and complaint, not with every keep-alive.
  bool Complain(const std::string& from, const std::string& what);
  void TellChanges(const health::NodeState* before, const health::NodeState& after);

  const std::string node_;
  const std::string nodes_prefix_;
  const size_t nodes_max_;
  const size_t nics_per_node_;
  health::ClusterView* const view_;
  EventReporter* const reporter_;
  const Outputs outputs_;
  std::map<std::string, Peer> peers_;
  std::map<std::string, About> about_;
  std::set<std::string> in_store_;  // nodes whose lease the store still holds
  NameClaims claims_;
  NameClaims::Speaker own_;
  bool own_in_store_ = false;  // the store has shown what this life put there
  std::string store_state_;
  std::map<std::string, std::string> complaints_;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_PEER_SET_H_
