// The sending side of one peer process: a SendSession and its sockets. See peer.h for threads.
#ifndef R2CC_NETPLUGIN_TRANSPORT_TCP_SEND_PEER_H_
#define R2CC_NETPLUGIN_TRANSPORT_TCP_SEND_PEER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "netplugin/flow/flow_map.h"
#include "netplugin/link/send_session.h"
#include "netplugin/transport/comm.h"
#include "netplugin/transport/tcp/call.h"
#include "netplugin/transport/tcp/io.h"
#include "netplugin/transport/tcp/lane_socket.h"
#include "netplugin/transport/tcp/packet_stream.h"
#include "netplugin/transport/tcp/peer.h"
#include "netplugin/transport/tcp/probe.h"
#include "netplugin/transport/tcp/record.h"
#include "netplugin/transport/tcp/send_link.h"

namespace r2cc::net {

class SendPeer final : public Peer {
 public:
  // Where the peer's process is found, from its listener's handle.
  struct Target {
    uint64_t process = 0;
    uint64_t nonce = 0;
    SocketAddress oob;
  };
  SendPeer(Io* io, const Target& target, uint64_t session);
  ~SendPeer() override;

  // With the turn. The comm must live until Close() returned.
  FlowId Open(uint64_t listen_id, uint16_t local_rail, Comm* comm);
  // With the turn. When it returns nothing touches the flow's buffers any more.
  void Close(FlowId flow);

  void RailState(uint16_t rail, bool up) override;
  void ApplyVerdicts() override;
  bool Settle() override;
  bool outstanding() const override { return session_.outstanding(); }
  bool idle() const override { return session_.idle(); }
  bool over() const override { return session_.failed() && session_.idle(); }
  const std::string& node() const { return peer_node_; }
  bool flushed() const override;
  void CloseFlows() override;
  void HalfClose() override;

 private:
  class BulkErrand;

  void Announce(uint64_t bytes) override { Count(bytes, bytes); }
  void Post(FlowId flow, void* data, uint64_t bytes) override;
  bool Hot(FlowId flow) override;
  void Tick() override;
  void CloseAll() override;
  void Crew(bool wanted) override;

  void Execute(const Action& action);
  void OpenOob();
  void CloseOob();
  void OobGreeted(Call::Outcome outcome, const HelloReply& reply, std::unique_ptr<PacketStream> stream);
  void OobEvent();
  void OobDown(Reach reach);
  void OpenLink(LinkId link, Incarnation incarnation);
  void Greeted(LinkId link, int socket, std::unique_ptr<PacketStream> stream);
  void ControlEvent(LinkId link);
  void BulkEvent(LinkId link, size_t index, uint32_t events);
  void SendFrame(Lane lane, const Frame& frame);
  // Moves chunks of a flow on its home link.
  void PumpHome(FlowId flow);
  // A small message whose way is free. False: it is not posted yet.
  bool SendAtOnce(FlowId flow, const void* data, uint64_t bytes);
  // As far as the link's bulk sockets go, there may be something new to carry: for its movers.
  void Stir(LinkId link);
  void StirAll();
  void CallMovers();
  // Of the sockets in ready_, while there are chunks for more calls than are `coming`; `together` leave with one call.
  void CallSome(size_t coming, size_t together);
  // PumpBulk in three steps, the second of which is the socket's.
  bool LoadBulk(LinkId link, size_t index);
  bool WroteBulk(LinkId link, size_t index, BulkSender::Result result, uint64_t sent_bytes);
  void HearAnswers(FlowId flow);
  // True if the turn ended before every socket was full or had nothing to send.
  bool PumpAll();
  // True if a chunk was moved.
  bool PumpBulk(LinkId link, size_t index);
  void LimitQueues();
  void FlushLanes();
  void SampleRates(Nanos now);
  void Trouble(LinkId link, plan::EvidenceCause cause);
  void Publish();
  Hello MakeHello(ConnectionKind kind) const;
  LinkEnds Ends(LinkId link) const;

  const Target target_;
  const uint64_t session_id_;
  const uint32_t tag_;
  SendSession session_;
  std::string peer_node_;
  std::vector<RailInfo> remote_rails_;
  std::unique_ptr<Call> oob_call_;
  Nanos oob_since_ = 0;
  LaneSocket oob_;
  std::vector<SendLink> links_;
  Probe probe_{&poller_, [this](Reach reach) { session_.PeerProbed(reach, now()); }};
  FlowMap<Comm*> comms_;
  std::vector<std::pair<LinkId, size_t>> ready_;  // sockets with room, while chunks are dealt out
  bool room_ = false;                             // a socket that has something to send has room again
  bool spread_ = false;
  bool queued_ = false;  // some lane may have queued frames
  Nanos sampled_ = 0;
  bool sampled_bulk_ = false;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_TCP_SEND_PEER_H_
