// Merges the views of other nodes into the one view, over any way: a peer's stream, our stream to it, the store.
#ifndef R2CC_DAEMON_PEERS_PEER_SET_H_
#define R2CC_DAEMON_PEERS_PEER_SET_H_

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/core/token_bucket.h"
#include "daemon/config/config.h"
#include "daemon/core/event_reporter.h"
#include "daemon/core/job_peers.h"
#include "daemon/core/speaker.h"
#include "daemon/io/peer_transport.h"
#include "daemon/io/store.h"
#include "daemon/peers/nic_changes.h"
#include "health/view/cluster_view.h"
#include "health/view/incarnations.h"

namespace r2cc::daemon {

// The core's thread only.
class PeerSet {
 public:
  // Nodes of jobs that this daemon calls in addition to the configuration's, shared among the jobs' users; others get their views through
  // the store.
  static constexpr size_t kJobPeersMax = 64;

  struct Outputs {
    // Another node's state as evidence about our own NICs.
    std::function<void(const std::vector<health::Evidence>&)> evidence;
    std::function<void()> on_view;
    // A daemon's view came from itself, and not through the store.
    std::function<void(const std::string& node)> on_message;
    // The store had our entry, and has another one in its place, or none.
    std::function<void()> on_own_entry_lost;
  };

  // All outlive it. `incarnation`: of this run.
  PeerSet(const Config& config, uint64_t incarnation, health::ClusterView* view, EventReporter* reporter, Outputs outputs);

  PeerTransport::Callbacks PeerCallbacks();
  Store::Callbacks StoreCallbacks();

  // A view that its own daemon pushed to us.
  void Receive(const v1::NodeView& message, const Speaker& from);
  // Nothing comes by it any more.
  void StreamEnded(uint64_t stream) { incarnations_.StreamEnded(stream); }

  // Sets the peers of the configuration from now on. DirectPeers() returns the result.
  void SetConfigured(const std::vector<PeerSpec>& peers);

  // The limits of the configuration from now on. Known nodes stay.
  void SetLimits(const Config& config) {
    nodes_max_ = config.nodes_max;
    forget_after_ = config.forget_after;
    nics_per_node_ = config.nics_per_node;
  }

  // The address at which other daemons reach this one, as last published.
  void SetOwn(const v1::NodeView& own) { peer_address_ = own.peer_address(); }

  // Lets leases run out, keeps alive the nodes that the store still has, and believes those whose rivals fell silent.
  void Tick();

  // The peers that this daemon calls directly: those of the configuration, and the nodes of its jobs whose addresses the store or others
  // have published. One stream carries the views of both nodes, so the node with the lesser name calls the other.
  std::vector<PeerSpec> DirectPeers(const JobPeers& job_peers);

  // Drops all that is known of a node that has left. FAILED_PRECONDITION with the way out while it is alive, and for the own one. REQUIRES:
  // the view has it. `why` is reported.
  absl::Status Forget(const std::string& node, const std::string& why);
  bool IsConfigured(const std::string& node) const {
    const auto peer = peers_.find(node);
    return peer != peers_.end() && peer->second.configured;
  }

  bool IsPeer(const std::string& node) const { return peers_.contains(node); }
  // The address of the daemon of `node`. UNAVAILABLE, with one line that states what would help, if it is not known.
  absl::StatusOr<PeerSpec> FindSpec(const std::string& node) const;
  std::vector<v1::PeerStatus> Peers() const;
  const std::string& store_state() const { return store_state_; }
  // Facts about a node that the view does not hold: its daemon's address and release.
  struct About {
    std::string peer_address;
    std::string release;
    uint32_t jobs_of_other_releases = 0;
    // How far its clock is ahead of this one's; not from the store.
    std::optional<int64_t> clock_ahead_ns = {};
  };
  About AboutNode(const std::string& node) const;

 private:
  struct Peer {
    std::string address;
    bool configured = false;
    bool connected = false;
    std::string error = "not connected yet";
    Nanos lost = 0;       // when the connection ended; 0: it was never connected, or is
    uint64_t stream = 0;  // of our own to it; 0: nothing has come by one
  };
  // A message from the store that is not believed for now.
  struct PendingEntry {
    health::NodeState state;
    About about;
  };
  std::set<std::string> Called(const JobPeers& job_peers) const;
  void OnPeerView(const std::string& peer, const v1::NodeView& message);
  void OnConnected(const std::string& peer);
  void OnLost(const std::string& peer, const std::string& why);
  void OnStoreChange(const StoreChange& change);
  void OnStoreState(const std::string& state);
  void OnOwnEntry(const StoreChange& change);
  // The store has `node`, or had it until now. Its lease there is a sign of life.
  void NoteAlive(const std::string& node);
  // False: it is refused, or outdated.
  bool Take(const v1::NodeView& message, const Speaker& from);
  // Whether `state` is from the run that is believed. A run that is held, takes over, or exists twice is reported.
  bool Believe(const health::NodeState& state, const About& about, const Speaker& from);
  // Into the view. False: it is outdated.
  bool Adopt(health::NodeState state, About about);
  void EndStream(Peer* peer);
  void ReviewPending();
  void ForgetOld();
  // True: there is a place for one more node.
  bool MakeRoom();
  void ReportReplaced(const std::string& node, const std::string& where, const health::Incarnations::Judgement& judgement);
  void ReportPending(const std::string& node, const std::string& where, const health::Incarnations::Judgement& judgement);
  // Two daemons of one name, at these places.
  void ReportDuplicate(const std::string& node, const std::string& one, const std::string& other);
  // As an event that names the node.
  void Report(const std::string& kind, const std::string& node, const std::string& message);
  // Complaints about one sender: a host with any port, the store, or a node of which there are two.
  struct Complaints {
    std::string last;
    TokenBucket allowed{1, 10};  // lines of the log
    uint64_t suppressed = 0;
  };
  // Reports once per sender and complaint, not with every keep-alive.
  bool Complain(const std::string& from, const std::string& what);
  // Those about `from`, or null if `what` was the last one reported.
  Complaints* NewsOf(const std::string& from, const std::string& what);

  const std::string node_;
  const uint64_t incarnation_;
  const std::string nodes_prefix_;
  size_t nodes_max_;
  Nanos forget_after_;
  size_t nics_per_node_;
  health::ClusterView* const view_;
  EventReporter* const reporter_;
  const Outputs outputs_;
  std::map<std::string, Peer> peers_;
  std::map<std::string, About> about_;
  health::Incarnations incarnations_;
  std::map<std::string, PendingEntry> pending_;    // by node
  std::map<std::string, Nanos> reported_pending_;  // by node: when it was last reported that something is not believed
  bool own_entry_ = false;                         // the store has it
  std::string peer_address_;
  std::string store_state_;
  std::map<std::string, Complaints> complaints_;
  NicChanges nic_changes_;
  Nanos forgot_ = 0;  // when nodes that have left were last searched for
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_PEERS_PEER_SET_H_
