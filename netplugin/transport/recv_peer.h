// Runs the receiving side of one peer process: a RecvSession, its links and its out-of-band connection. See peer.h for threads.
#ifndef R2CC_NETPLUGIN_TRANSPORT_RECV_PEER_H_
#define R2CC_NETPLUGIN_TRANSPORT_RECV_PEER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "netplugin/flow/flow_map.h"
#include "netplugin/link/recv_session.h"
#include "netplugin/transport/comm.h"
#include "netplugin/transport/control_channels.h"
#include "netplugin/transport/host.h"
#include "netplugin/transport/link_slots.h"
#include "netplugin/transport/oob.h"
#include "netplugin/transport/peer.h"

namespace r2cc::net {

class RecvPeer final : public Peer, private RecvOwner, private OobOwner {
 public:
  // Called when the peer opens a flow to a listener of ours: returns the comm to use, or null if there is no such listener.
  using OnFlowOpened = std::function<Comm*(FlowId flow, uint64_t listen_id)>;
  RecvPeer(Host* host, const Hello& hello, OnFlowOpened on_flow_opened);
  ~RecvPeer() override;

  // With the lock. The flow's comm is not touched any more. A link may still write its buffers until Holds() is false: that takes a round
  // trip to the peer, or no longer than 250 ms and this node's own kernel or device.
  void Close(FlowId flow) R2CC_REQUIRES(mutex_);
  bool Holds(FlowId flow) const R2CC_REQUIRES(mutex_) { return session_.retiring().contains(flow); }

  // With the lock: greeted connections of this session, which are answered with `reply`. AttachLink() returns false and leaves one line in
  // `reason` if it refuses: the connection is then still the caller's. If the previous incarnation has to be closed first, the connection
  // is kept, for as long as the initiator waits for the answer.
  void AttachOob(const Hello& hello, const HelloReply& reply, std::unique_ptr<Connection> connection) R2CC_REQUIRES(mutex_);
  bool AttachLink(const Hello& hello, const HelloReply& reply, std::unique_ptr<Connection>* connection, std::string* reason)
      R2CC_REQUIRES(mutex_);

  // With the lock. Other keys reach the region now, or none.
  void RegionChanged(const Region& region) R2CC_REQUIRES(mutex_) { session_.RegionChanged(std::make_shared<Region>(region), now()); }

  // With the lock. This process's own data to the peer stalls on these rails: see RecvLinks.
  void RailsStalled(RailPair rails) R2CC_REQUIRES(mutex_) { session_.RailsStalled(rails, now()); }
  uint64_t process() const { return process_; }

  // The peer greets again, and the answer has the new content.
  void Regreet() override R2CC_REQUIRES(mutex_);
  void RailState(uint16_t rail, bool up) override R2CC_REQUIRES(mutex_);
  void ApplyVerdicts() override R2CC_REQUIRES(mutex_);
  bool RunToCompletion() override R2CC_REQUIRES(mutex_);
  bool PublishFound() override R2CC_REQUIRES(mutex_);
  bool has_link() const override R2CC_REQUIRES(mutex_) { return session_.links().any_up(); }
  bool outstanding() const override R2CC_REQUIRES(mutex_) {
    return session_.flows().outstanding() || !session_.idle() || !session_.channels().any_open();
  }
  bool idle() const override R2CC_REQUIRES(mutex_) { return session_.idle(); }
  bool over() const override R2CC_REQUIRES(mutex_) {
    return session_.idle() && !session_.channels().any_open() && links_.closing().empty();
  }
  const std::string& node() const R2CC_REQUIRES(mutex_) { return peer_node_; }
  // With the lock; as SendPeer's.
  JobRequests Requests() const R2CC_REQUIRES(mutex_) { return session_.Requests(); }
  JobWait WaitsFor(LinkEnds* ends) const R2CC_REQUIRES(mutex_) {
    *ends = {.peer_node = peer_node_};
    return session_.WaitsFor(now());
  }
  // A peer that is gone takes nothing, and a device may not report that.
  bool flushed() const override R2CC_REQUIRES(mutex_) {
    return session_.failed() || channels_.flushed([this](ChannelId channel) { return session_.channels().up(channel); });
  }
  void HalfClose() override R2CC_REQUIRES(mutex_) { channels_.HalfClose(); }
  void CloseFlows() override R2CC_REQUIRES(mutex_);
  // With the lock: for tests.
  const RecvSession& session() const R2CC_REQUIRES(mutex_) { return session_; }

 private:
  // Peer:
  // The size of a received message is known only when it comes.
  void Hint(uint64_t) override R2CC_REQUIRES(mutex_) {}
  void Post(FlowId flow, const Buffer& to, uint64_t bytes) override R2CC_REQUIRES(mutex_);
  bool FastPath(FlowId flow) override R2CC_REQUIRES(mutex_);
  void OnTick() override R2CC_REQUIRES(mutex_);
  void CloseAll() override R2CC_REQUIRES(mutex_);
  void BreakFlows() noexcept override R2CC_REQUIRES(mutex_);
  // RecvOwner:
  std::shared_ptr<void> KeepAlive() override { return weak_from_this().lock(); }
  void FrameReceived(const LinkName& name, const Frame& frame) override R2CC_REQUIRES(mutex_) {
    if (!TakeOffer(frame)) session_.Receive(name.link, frame, now());
  }
  void Trouble(const LinkName& name, plan::EvidenceCause cause) override R2CC_REQUIRES(mutex_) {
    session_.LinkTrouble(name.link, name.incarnation, cause, now());
  }
  void LinkClosed(LinkName name, bool ok) override R2CC_REQUIRES(mutex_);
  void Ready(const LinkName&) override R2CC_REQUIRES(mutex_) { unread_ = true; }
  bool WithLock(FunctionRef<bool()> report, FunctionRef<bool(bool posted)> ask) override { return RunWithLock(report, ask); }
  bool Alive(const LinkName& name) const override R2CC_REQUIRES(mutex_) {
    return session_.links().up(name.link) && session_.links().incarnation(name.link) == name.incarnation;
  }
  bool Begin(const LinkName& name, const Chunk& header, std::byte** destination) override R2CC_REQUIRES(mutex_);
  void Finish(const LinkName& name, const Chunk& header) override R2CC_REQUIRES(mutex_);
  bool Placed(const LinkName& name, const Chunk& header) override R2CC_REQUIRES(mutex_);
  bool FindFlow(uint32_t slot, uint32_t slots, FlowId* flow, MessageId* placed_through) const override R2CC_REQUIRES(mutex_) {
    return session_.FindFlow(slot, slots, flow, placed_through);
  }
  bool MayBePlaced(FlowId flow) const override R2CC_REQUIRES(mutex_) {
    const RecvFlows::Flow* const found = session_.flows().Find(flow);
    return found != nullptr && found->may_be_placed();
  }
  void Answer(const LinkName& name, const Endpoint& endpoint) override R2CC_REQUIRES(mutex_);
  void Flushed(const LinkName& name, const FlushName& flush) override R2CC_REQUIRES(mutex_) {
    session_.Flushed(name.link, name.incarnation, flush);
  }
  void Proved(const LinkName& name, bool ok) override R2CC_REQUIRES(mutex_) { session_.Proved(name.link, name.incarnation, ok); }
  // OobOwner:
  void OobGreeted(const HelloReply&) override R2CC_REQUIRES(mutex_) {}  // an initiator's
  void OobFrameReceived(const Frame& frame) override R2CC_REQUIRES(mutex_) {
    if (!TakeOffer(frame)) session_.Receive(kOobChannel, frame, now());
  }
  void OobUngreeted() override R2CC_REQUIRES(mutex_) {}
  void OobLost(ProbeResult) override R2CC_REQUIRES(mutex_) { session_.OobDown(now()); }
  void Probed(ProbeResult result) override R2CC_REQUIRES(mutex_) { session_.PeerProbed(result, now()); }

  // Connections of one incarnation that wait for the end of the previous one.
  struct Kept {
    Hello hello;
    HelloReply reply;
    std::unique_ptr<Connection> connection;
    Nanos since = 0;
  };
  RecvSession::Options MakeOptions(Host* host, const Hello& hello);
  bool Attach(const Hello& hello, const HelloReply& reply, std::unique_ptr<Connection>* connection, std::string* reason)
      R2CC_REQUIRES(mutex_);
  bool AttachGreeted(const Hello& hello, const HelloReply& reply, std::unique_ptr<Connection>* connection, std::string* reason)
      R2CC_REQUIRES(mutex_);
  void AttachKept(LinkId link) R2CC_REQUIRES(mutex_);
  // True: the frame was an offer of a link.
  bool TakeOffer(const Frame& frame) R2CC_REQUIRES(mutex_);
  void OnOffer(const frames::LinkOffer& offer) R2CC_REQUIRES(mutex_);
  void Execute(const SessionAction& action) R2CC_REQUIRES(mutex_);
  void OpenFlow(const SessionAction& action) R2CC_REQUIRES(mutex_);
  void CloseLink(LinkId link, Incarnation incarnation) R2CC_REQUIRES(mutex_);
  void Flush(const SessionAction& action) R2CC_REQUIRES(mutex_);
  void FlushChannels() R2CC_REQUIRES(mutex_);
  void Publish() R2CC_REQUIRES(mutex_);

  OnFlowOpened on_flow_opened_;
  const uint64_t process_;  // of the peer
  std::string peer_node_;
  std::string logged_release_;
  std::vector<RailInfo> remote_rails_;
  NamesOnPage peer_names_;
  RecvSession session_;
  LinkSlots<RecvLink> links_;
  // A peer of another release may place data after it has confirmed a BYE.
  const bool answers_closes_;
  std::unique_ptr<Oob> oob_;
  ControlChannels channels_{oob_->control()};
  std::vector<Kept> kept_;
  std::vector<frames::LinkOffer> offers_;  // received, and not judged yet
  struct Receiving {
    Comm* comm = nullptr;
    LinkId link = 0;  // the link that brought its last chunk
  };
  FlowMap<Receiving> comms_;
  bool unread_ = false;      // some link may hold more
  bool was_linked_ = false;  // some rail was up
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_RECV_PEER_H_
