// Peers that are a test's function calls.
#ifndef R2CC_DAEMON_IO_FAKE_PEER_TRANSPORT_H_
#define R2CC_DAEMON_IO_FAKE_PEER_TRANSPORT_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/io/peer_transport.h"

namespace r2cc::daemon {

class FakePeerTransport final : public PeerTransport {
 public:
  using Forgetter = std::function<absl::StatusOr<v1::ForgetNodeReply>(const v1::ForgetNodeRequest&)>;
  using Reporter = std::function<absl::StatusOr<v1::ReportJobsReply>(const v1::ReportJobsRequest&)>;
  using Actor = std::function<absl::StatusOr<v1::NicActionReply>(const v1::NicActionRequest&)>;

  ~FakePeerTransport() override { Stop(); }

  void Start(ViewBroadcaster* broadcaster, Callbacks callbacks) override {
    broadcaster_ = broadcaster;
    callbacks_ = std::move(callbacks);
    listener_ = broadcaster_->Listen([this] { pushed_.push_back(*broadcaster_->Get()); });
  }
  void SetPeers(const std::vector<PeerSpec>& peers) override { peers_ = peers; }
  void Act(const PeerSpec& peer, const v1::NicActionRequest& request, Answer<v1::NicActionReply> answer) override {
    const auto found = actors_.find(peer.node);
    answer(found == actors_.end()
               ? absl::StatusOr<v1::NicActionReply>(absl::UnavailableError(absl::StrCat("node ", peer.node, " cannot be reached")))
               : found->second(request));
  }
  void ForgetNode(const PeerSpec& peer, const v1::ForgetNodeRequest& request, Answer<v1::ForgetNodeReply> answer) override {
    const auto found = forgetters_.find(peer.node);
    answer(found == forgetters_.end()
               ? absl::StatusOr<v1::ForgetNodeReply>(absl::UnavailableError(absl::StrCat("node ", peer.node, " cannot be reached")))
               : found->second(request));
  }
  void ExplainNic(const PeerSpec& peer, const v1::ExplainNicRequest& request, Answer<v1::ExplainNicReply> answer) override {
    if (!actors_.contains(peer.node)) return answer(absl::UnavailableError(absl::StrCat("node ", peer.node, " cannot be reached")));
    v1::ExplainNicReply reply;
    reply.set_node(peer.node);
    reply.mutable_nic()->set_name(request.nic());
    answer(reply);
  }
  void ProbePaths(const PeerSpec& peer, const v1::ProbePathsRequest& request, Answer<v1::ProbePathsReply> answer) override {
    if (!actors_.contains(peer.node)) return answer(absl::UnavailableError(absl::StrCat("node ", peer.node, " cannot be reached")));
    v1::ProbePathsReply reply;
    reply.set_node(peer.node);
    reply.set_peer(request.peer());
    answer(reply);
  }
  void ReportJobs(const PeerSpec& peer, const v1::ReportJobsRequest& request, Answer<v1::ReportJobsReply> answer) override {
    const auto found = reporters_.find(peer.node);
    if (found != reporters_.end()) return answer(found->second(request));
    // Neither an answer nor an error.
    unanswered_reports_.push_back(answer);
  }
  void Stop() override {
    if (listener_ != 0) broadcaster_->Unlisten(std::exchange(listener_, 0));
  }

  void Connect(const std::string& peer) { callbacks_.on_connected(peer); }
  void Lose(const std::string& peer, const std::string& why) { callbacks_.on_lost(peer, why); }
  void Receive(const std::string& peer, const v1::NodeView& view) { callbacks_.on_view(peer, view); }
  void SetActor(const std::string& peer, Actor actor) { actors_[peer] = std::move(actor); }
  void SetForgetter(const std::string& peer, Forgetter forgetter) { forgetters_[peer] = std::move(forgetter); }
  void SetReporter(const std::string& peer, Reporter reporter) { reporters_[peer] = std::move(reporter); }
  // Every view that was pushed, keep-alives included.
  const std::vector<v1::NodeView>& pushed() const { return pushed_; }
  const std::vector<PeerSpec>& peers() const { return peers_; }

 private:
  ViewBroadcaster* broadcaster_ = nullptr;
  ViewBroadcaster::ListenerId listener_ = 0;
  Callbacks callbacks_;
  std::map<std::string, Actor> actors_;
  std::map<std::string, Forgetter> forgetters_;
  std::map<std::string, Reporter> reporters_;
  std::vector<Answer<v1::ReportJobsReply>> unanswered_reports_;
  std::vector<v1::NodeView> pushed_;
  std::vector<PeerSpec> peers_;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_IO_FAKE_PEER_TRANSPORT_H_
