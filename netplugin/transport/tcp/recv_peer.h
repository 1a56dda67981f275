// The receiving side of one peer process: a RecvSession and its sockets. See peer.h for threads.
#ifndef R2CC_NETPLUGIN_TRANSPORT_TCP_RECV_PEER_H_
#define R2CC_NETPLUGIN_TRANSPORT_TCP_RECV_PEER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "netplugin/flow/acknowledgement_pace.h"
#include "netplugin/flow/flow_map.h"
#include "netplugin/link/recv_session.h"
#include "netplugin/transport/comm.h"
#include "netplugin/transport/tcp/bulk.h"
#include "netplugin/transport/tcp/errand.h"
#include "netplugin/transport/tcp/io.h"
#include "netplugin/transport/tcp/lane_socket.h"
#include "netplugin/transport/tcp/packet_stream.h"
#include "netplugin/transport/tcp/peer.h"
#include "netplugin/transport/tcp/probe.h"

namespace r2cc::net {

class RecvPeer final : public Peer {
 public:
  // Asked when the peer opens a flow to a listener of ours: the comm to use, or null if nobody listens.
  using FlowOpened = std::function<Comm*(FlowId flow, uint64_t listen_id)>;
  RecvPeer(Io* io, const Hello& hello, FlowOpened flow_opened);
  ~RecvPeer() override;

  // With the turn. When it returns nothing touches the flow's buffers any more.
  void Close(FlowId flow);

  // With the turn: greeted connections of this session. False: refused, with a line in `reason`; the stream is then still the caller's.
  bool AttachOob(const Hello& hello, std::unique_ptr<PacketStream>* stream);
  bool AttachLink(const Hello& hello, std::unique_ptr<PacketStream>* stream, std::string* reason);

  void RailState(uint16_t rail, bool up) override;
  void ApplyVerdicts() override;
  bool Settle() override;
  bool PublishFound() override;
  bool outstanding() const override { return session_.outstanding() || !session_.idle() || !session_.any_lane(); }
  bool idle() const override { return session_.idle(); }
  bool over() const override { return session_.idle() && !session_.any_lane(); }
  const std::string& node() const { return peer_node_; }
  size_t remote_rails() const { return remote_rails_.size(); }
  bool flushed() const override;
  void CloseFlows() override;
  void HalfClose() override;

 private:
  class BulkErrand;
  struct Bulk {
    std::unique_ptr<BulkReceiver> receiver;
    Poller::Token token = 0;  // 0: a mover waits for what arrives, or NCCL's threads look all the time
    int found = 0;            // looks of theirs that found something, since the poller had it
    bool more = false;
    AcknowledgementPace pace;
    Hire hire;  // off: whoever has the turn reads

    bool unwatched() const { return receiver != nullptr && token == 0 && !hire.on(); }
  };
  struct LinkSockets {
    Incarnation incarnation = 0;
    std::unique_ptr<LaneSocket> control;
    std::vector<Bulk> bulk;
    int proofs = 0;
    bool proved = true;

    bool whole() const { return !bulk.empty() && static_cast<size_t>(proofs) == bulk.size(); }
  };

  // What a buffer is posted for shows when it comes.
  void Announce(uint64_t) override {}
  void Post(FlowId flow, void* data, uint64_t bytes) override;
  bool Hot(FlowId flow) override;
  void Tick() override {
    probe_.Tick(now());
    session_.Tick(now());
  }
  void CloseAll() override;
  void Crew(bool wanted) override;
  void ReadUnwatched() override;
  void WatchAll() override;

  void Execute(const Action& action);
  void OpenFlow(const Action& action);
  void CloseLink(LinkId link);
  void OobEvent();
  void OobDown();
  void ControlEvent(LinkId link);
  // True if anything was read.
  bool ReadBulk(LinkId link, size_t index);
  // False: the link has ended, its sockets are about to be closed, and nothing of it may reach a buffer.
  bool Lives(LinkId link) const { return session_.link_up(link) && session_.incarnation(link) == links_[link].incarnation; }
  // Calls `read` with the link's sink, and sees to what came of it. True if anything was read.
  bool Reading(LinkId link, size_t index, FunctionRef<BulkReceiver::Result(const BulkReceiver::Sink&, uint64_t* received_bytes)> read);
  void WatchBulk(LinkId link, size_t index);
  // A look found something there.
  void Found(Bulk* bulk);
  void SendFrame(Lane lane, const Frame& frame);
  void FlushLanes();
  void Trouble(LinkId link, plan::EvidenceCause cause);
  void Publish();

  FlowOpened flow_opened_;
  std::string peer_node_;
  const uint64_t session_id_;
  const uint32_t tag_;
  std::vector<RailInfo> remote_rails_;
  SocketAddress peer_oob_;
  RecvSession session_;
  LaneSocket oob_;
  std::vector<LinkSockets> links_;
  struct Receiving {
    Comm* comm = nullptr;
    LinkId link = 0;  // where its last chunk came from
    size_t socket = 0;
  };
  FlowMap<Receiving> comms_;
  // Hints that spare a look at every link in every turn: some socket may hold more, some lane may have queued frames.
  bool unread_ = false;
  bool queued_ = false;
  bool unwatched_ = false;  // some socket may be
  Probe probe_{&poller_, [this](Reach reach) { session_.PeerProbed(reach, now()); }};
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_TCP_RECV_PEER_H_
