// Direct push between daemons, as daemon/rpc does it over gRPC: the caller's view at each ring of its broadcaster, the called one's
// likewise.
#ifndef R2CC_TESTS_CLUSTER_PEERS_H_
#define R2CC_TESTS_CLUSTER_PEERS_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "daemon/io/peer_transport.h"
#include "daemon/rpc/backend.h"
#include "daemon/rpc/reconnect.h"
#include "tests/cluster/network.h"
#include "tests/cluster/sim_executor.h"

namespace r2cc::cluster {

// A connection that carries nothing is given up by both ends after so long: daemon/rpc's ping and its answer's time-out.
constexpr Nanos kConnectionLost = 2 * kNanosPerSecond;

class Peers;

// Where daemons listen.
class PeerDirectory {
 public:
  explicit PeerDirectory(Network* network) : network_(network) {}
  void Listen(const std::string& address, Peers* end) { ends_[address] = end; }
  void Leave(const std::string& address) { ends_.erase(address); }
  Peers* Find(const std::string& address) const {
    const auto found = ends_.find(address);
    return found == ends_.end() ? nullptr : found->second;
  }
  Network* network() const { return network_; }
  uint64_t NextStream() { return ++streams_; }

 private:
  Network* const network_;
  uint64_t streams_ = 0;
  std::map<std::string, Peers*> ends_;
};

// The peers of one run of one daemon.
class Peers final : public daemon::PeerTransport {
 public:
  // All outlive it.
  Peers(int node, std::string address, SimExecutor* executor, PeerDirectory* directory);
  ~Peers() override;
  // Whom it serves; before anybody can call.
  void Serve(daemon::Backend* backend);

  void Start(daemon::ViewBroadcaster* broadcaster, Callbacks callbacks) override;
  void SetPeers(const std::vector<daemon::PeerSpec>& peers) override;
  void Act(const daemon::PeerSpec& peer, const v1::NicActionRequest& request, daemon::Answer<v1::NicActionReply> answer) override;
  void ForgetNode(const daemon::PeerSpec& peer, const v1::ForgetNodeRequest& request, daemon::Answer<v1::ForgetNodeReply> answer) override;
  void ExplainNic(const daemon::PeerSpec& peer, const v1::ExplainNicRequest& request, daemon::Answer<v1::ExplainNicReply> answer) override;
  void ProbePaths(const daemon::PeerSpec& peer, const v1::ProbePathsRequest& request, daemon::Answer<v1::ProbePathsReply> answer) override;
  void ReportJobs(const daemon::PeerSpec& peer, const v1::ReportJobsRequest& request, daemon::Answer<v1::ReportJobsReply> answer) override;
  // The kernel closes its connections: the other ends hear of it, unless the way is cut.
  void Stop() override;

  size_t connections() const { return streams_.size(); }

 private:
  struct Stream;
  struct Link {
    daemon::PeerSpec spec;
    std::shared_ptr<Stream> stream;
    ExponentialBackOff backoff = daemon::ReconnectBackOff();
    std::string last_error;
    bool answered = false;
    TimerId timer = 0;
  };
  void Connect(const std::string& peer);
  void Open(const std::string& peer, Peers* server);
  void OnView(const std::string& peer, v1::NodeView view);
  void OnEnd(const std::string& peer, const std::string& why);
  void Retire(Link* link);
  // `stream`'s end here is over.
  void Leave(const std::shared_ptr<Stream>& stream);
  void CheckStreams();
  void Answered(uint64_t call, const absl::StatusOr<v1::NicActionReply>& reply);
  Network* network() const { return directory_->network(); }

  const int node_;
  const std::string address_;
  SimExecutor* const executor_;
  PeerDirectory* const directory_;
  daemon::Backend* backend_ = nullptr;
  daemon::ViewBroadcaster* broadcaster_ = nullptr;
  Callbacks callbacks_;
  std::map<std::string, Link> links_;
  std::map<uint64_t, std::shared_ptr<Stream>> streams_;           // of both kinds, by their age
  std::map<uint64_t, daemon::Answer<v1::NicActionReply>> calls_;  // that other daemons have not answered yet
  std::map<std::string, Network::Lane> call_lanes_;               // by address
  bool running_ = false;
};

}  // namespace r2cc::cluster

#endif  // R2CC_TESTS_CLUSTER_PEERS_H_
