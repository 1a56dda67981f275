// Runs the sending side of one peer process: a SendSession, its links and its out-of-band connection. See peer.h for threads.
#ifndef R2CC_NETPLUGIN_TRANSPORT_SEND_PEER_H_
#define R2CC_NETPLUGIN_TRANSPORT_SEND_PEER_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "netplugin/flow/flow_map.h"
#include "netplugin/link/send_session.h"
#include "netplugin/rails/reach.h"
#include "netplugin/transport/comm.h"
#include "netplugin/transport/control_channels.h"
#include "netplugin/transport/host.h"
#include "netplugin/transport/link_slots.h"
#include "netplugin/transport/memory_table.h"
#include "netplugin/transport/oob.h"
#include "netplugin/transport/peer.h"
#include "netplugin/transport/record.h"
#include "netplugin/transport/send_pump.h"

namespace r2cc::net {

class SendPeer final : public Peer, private SendOwner, private OobOwner {
 public:
  // The peer's process, from its listener's handle.
  struct Target {
    uint64_t process = 0;
    uint64_t nonce = 0;
    OobAddress oob;
    bool all_links = true;  // see LinkDemand
  };
  SendPeer(Host* host, const Target& target, uint64_t session);
  ~SendPeer() override;

  // With the lock. The comm must live until Close() returned.
  FlowId Open(uint64_t listen_id, uint16_t local_rail, Comm* comm) R2CC_REQUIRES(mutex_);
  // With the lock. Nothing is sent for the flow any more, and its comm is not touched. A link may still read its buffers until Holds() is
  // false: that takes no longer than this node's own kernel or device, or 250 ms and the end of the link.
  void Close(FlowId flow) R2CC_REQUIRES(mutex_);
  bool Holds(FlowId flow) const R2CC_REQUIRES(mutex_);

  // With the lock. Memory of this process is now registered on other rails, or on none.
  void RegionChanged(const Region& region) R2CC_REQUIRES(mutex_) { session_.OwnRegionChanged(region.id, MemoryTable::RailsOf(region)); }

  // With the lock: see SendFlows::SetWeight().
  [[nodiscard]] bool SetWeight(FlowId flow, double weight) R2CC_REQUIRES(mutex_) { return session_.SetWeight(flow, weight); }

  // With the lock: see SendFlows::SetDealt().
  void SetDealt(FlowId flow, bool dealt) R2CC_REQUIRES(mutex_) { session_.SetDealt(flow, dealt); }

  void Regreet() override R2CC_REQUIRES(mutex_);
  void RailState(uint16_t rail, bool up) override R2CC_REQUIRES(mutex_);
  void ApplyVerdicts() override R2CC_REQUIRES(mutex_);
  bool RunToCompletion() override R2CC_REQUIRES(mutex_);
  bool has_link() const override R2CC_REQUIRES(mutex_) { return session_.links().any_up(); }
  bool outstanding() const override R2CC_REQUIRES(mutex_) { return session_.outstanding(); }
  bool idle() const override R2CC_REQUIRES(mutex_) { return session_.idle(); }
  // A thread that closed a flow waits for links that may still read its buffers, and a peer that is shut gets no reports of links' ends.
  bool over() const override R2CC_REQUIRES(mutex_) {
    return session_.failed() && session_.idle() && releasing_.empty() && links_.closing().empty();
  }
  const std::string& node() const R2CC_REQUIRES(mutex_) { return peer_node_; }
  // With the lock. What the job waits for, and the ends of that link, if it is one.
  JobRequests Requests() const R2CC_REQUIRES(mutex_) { return session_.Requests(); }
  JobWait WaitsFor(LinkEnds* ends) const R2CC_REQUIRES(mutex_) {
    const JobWait wait = session_.WaitsFor();
    *ends = wait.link.has_value() ? Ends(*wait.link) : LinkEnds{.peer_node = peer_node_};
    return wait;
  }
  // As of its last tick. Any thread.
  RailUse rail_use() const { return {rails_up_.load(std::memory_order_relaxed), rails_lost_.load(std::memory_order_relaxed)}; }
  bool flushed() const override R2CC_REQUIRES(mutex_) {
    return channels_.flushed([this](ChannelId channel) { return session_.channels().up(channel); });
  }
  void HalfClose() override R2CC_REQUIRES(mutex_) { channels_.HalfClose(); }
  void CloseFlows() override R2CC_REQUIRES(mutex_);
  // With the lock: for tests.
  const SendSession& session() const R2CC_REQUIRES(mutex_) { return session_; }

 private:
  // Peer:
  void Hint(uint64_t bytes) override R2CC_REQUIRES(mutex_) { Account(bytes); }
  void Post(FlowId flow, const Buffer& from, uint64_t bytes) override R2CC_REQUIRES(mutex_);
  bool FastPath(FlowId flow) override R2CC_REQUIRES(mutex_);
  void OnTick() override R2CC_REQUIRES(mutex_);
  void CloseAll() override R2CC_REQUIRES(mutex_);
  void BreakFlows() noexcept override R2CC_REQUIRES(mutex_);
  // SendOwner:
  std::shared_ptr<void> KeepAlive() override { return weak_from_this().lock(); }
  void FrameReceived(const LinkName& name, const Frame& frame) override R2CC_REQUIRES(mutex_);
  void Trouble(const LinkName& name, plan::EvidenceCause cause) override R2CC_REQUIRES(mutex_);
  void LinkClosed(LinkName name, bool ok) override R2CC_REQUIRES(mutex_);
  void Ready(const LinkName& name) override R2CC_REQUIRES(mutex_) {
    room_ = true;
    pump_.MarkDirty(name.link);
  }
  bool WithLock(FunctionRef<bool()> report, FunctionRef<bool(bool posted)> ask) override;
  void Offer(const LinkName& name, const Endpoint& endpoint) override R2CC_REQUIRES(mutex_);
  void Connected(const LinkName& name) override R2CC_REQUIRES(mutex_) {
    session_.link_input().Connected(name.link, name.incarnation, now());
  }
  bool Pull(const LinkName& name, Chunk* chunk) override R2CC_REQUIRES(mutex_) {
    return session_.Pull(name.link, name.incarnation, chunk, now());
  }
  WriteTarget TargetOf(const LinkName& name, const Chunk& chunk) const override R2CC_REQUIRES(mutex_) {
    return session_.TargetOf(name.link, chunk);
  }
  bool Expects(const Chunk& chunk) const override R2CC_REQUIRES(mutex_) { return session_.flows().Expects(chunk); }
  bool IsOpen(FlowId flow) const override R2CC_REQUIRES(mutex_) { return session_.flows().Find(flow) != nullptr; }
  bool MayWrite(FlowId flow) const override R2CC_REQUIRES(mutex_) {
    const SendFlows::Flow* const found = session_.flows().Find(flow);
    return found != nullptr && found->state != SendFlows::State::kFailed;
  }
  std::shared_ptr<const std::byte[]> CopyOf(const Chunk& chunk) const override R2CC_REQUIRES(mutex_) {
    return session_.flows().at(chunk.flow).ledger.Copy(chunk.message);
  }
  // OobOwner:
  void OobGreeted(const HelloReply& reply) override R2CC_REQUIRES(mutex_);
  void OobFrameReceived(const Frame& frame) override R2CC_REQUIRES(mutex_);
  void OobUngreeted() override R2CC_REQUIRES(mutex_) {
    answered_ = true;
    session_.OobUngreeted(now());
  }
  void OobLost(ProbeResult result) override R2CC_REQUIRES(mutex_) { session_.OobDown(result, now()); }
  void Probed(ProbeResult result) override R2CC_REQUIRES(mutex_) { session_.PeerProbed(result, now()); }

  SendSession::Options MakeOptions(const Host& host, const Target& target, uint64_t session);
  void Execute(const SessionAction& action) R2CC_REQUIRES(mutex_);
  void OpenLink(LinkId link, Incarnation incarnation) R2CC_REQUIRES(mutex_);
  void OfferAgain() R2CC_REQUIRES(mutex_);
  // True: the frame was an answer to an offer.
  bool TakeAnswer(const Frame& frame) R2CC_REQUIRES(mutex_);
  // Sends a small message whose link is free. False: it is not posted yet.
  bool SendNow(FlowId flow, const Buffer& from, uint64_t bytes) R2CC_REQUIRES(mutex_);
  void PollAnswers(FlowId flow) R2CC_REQUIRES(mutex_);
  void FlushChannels() R2CC_REQUIRES(mutex_);
  void SampleRates(Nanos now) R2CC_REQUIRES(mutex_);
  void Publish() R2CC_REQUIRES(mutex_);
  Hello MakeHello(ConnectionKind kind) const R2CC_REQUIRES(mutex_);
  LinkEnds Ends(LinkId link) const R2CC_REQUIRES(mutex_);
  // Logs at most one line, as long as the peer was never reached.
  void WarnOfReach() R2CC_REQUIRES(mutex_);
  std::string TriedWays() const { return net::TriedWays(*host_, &target_.oob, host_->RailInfos(), remote_rails_); }

  const Target target_;
  const uint64_t session_id_;
  SendSession session_;
  ReachWatch reach_;
  bool answered_ = false;  // the peer's kernel took a connection
  std::string peer_node_;
  std::string logged_release_;
  std::vector<RailInfo> remote_rails_;
  NamesOnPage peer_names_;
  LinkSlots<SendLink> links_;
  // Offers of links that have no answer yet. An offer that was made while there was no channel, or was lost with its channel, is made again
  // when the out-of-band connection is up: otherwise its link would wait for as long as an attempt may last.
  std::map<LinkId, frames::LinkOffer> offers_;
  // Links that have almost finished reading the buffers of a closed flow.
  struct Releasing {
    FlowId flow = 0;
    LinkName name;
    Nanos since = 0;
  };
  std::vector<Releasing> releasing_;
  std::unique_ptr<Oob> oob_;
  ControlChannels channels_{oob_->control()};
  SendPump pump_{&session_, &links_};
  FlowMap<Comm*> comms_;
  std::atomic<uint64_t> rails_up_{0}, rails_lost_{0};
  bool room_ = false;  // a link that has something to send has room again
  Nanos sampled_ = 0;
  bool sampled_bulk_ = false;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_SEND_PEER_H_
