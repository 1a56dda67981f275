// The sender's end of a simulated process: the production SendSession, and simulated sockets that carry out its actions. The
// counterpart of netplugin/transport/tcp's SendPeer.
#ifndef R2CC_TESTS_SIM_SEND_END_H_
#define R2CC_TESTS_SIM_SEND_END_H_

#include <memory>
#include <vector>

#include "netplugin/link/send_session.h"
#include "tests/sim/io.h"
#include "tests/sim/peer_probe.h"
#include "tests/sim/stream.h"

namespace r2cc::sim {

class SendEnd {
 public:
  SendEnd(Io* io, int peer, uint64_t session);
  SendEnd(const SendEnd&) = delete;
  SendEnd& operator=(const SendEnd&) = delete;

  // ---- the job ----

  net::FlowId Open(uint64_t listen_id, int local_rail);
  void Post(net::FlowId flow, const void* data, uint64_t bytes);
  // What NCCL may be told is done.
  net::MessageId DoneThrough(net::FlowId flow) const { return session_.DoneThrough(flow); }
  void Close(net::FlowId flow);
  const net::SendSession& session() const { return session_; }

  // ---- the process ----

  void RailState(int rail, bool up) { session_.LocalRail(static_cast<uint16_t>(rail), up, io_->now()); }
  void ApplyVerdicts();
  void Tick();
  // Carries out what the session asks for. True if there is more to move at once.
  bool Settle();
  bool idle() const { return session_.idle(); }
  bool Flushed() const;
  // The process ends: last words, then everything is closed.
  void End();

 private:
  struct Greeting {
    std::unique_ptr<FrameStream> stream;
    Io::Token token = 0;
    net::ConnectionKind kind = net::ConnectionKind::kOob;
    uint8_t socket = 0;
    bool said = false;
  };
  struct Bulk {
    std::unique_ptr<BulkOut> out;
    std::shared_ptr<Socket> socket;
    Io::Token token = 0;
    bool blocked = false;
  };
  struct Control {
    std::unique_ptr<FrameStream> stream;
    Io::Token token = 0;
  };
  struct LinkSockets {
    net::Incarnation incarnation = 0;
    bool was_up = false;
    std::vector<std::unique_ptr<Greeting>> greeting;
    Control control;
    std::vector<Bulk> bulk;
  };

  void Obey();
  void Execute(const net::Action& action);
  void SendFrame(net::Lane lane, const net::Frame& frame);
  net::Hello MakeHello(net::ConnectionKind kind) const;
  void OpenOob();
  void CloseOob(bool abandon);
  void OobDown(net::Reach reach);
  void OobGreets();
  void OobSpeaks();
  void OpenLink(net::LinkId link, net::Incarnation incarnation);
  void CloseLink(net::LinkId link);
  void LinkGreets(net::LinkId link, Greeting* greeting);
  void Greeted(net::LinkId link, Greeting* greeting);
  void ControlSpeaks(net::LinkId link);
  void BulkReady(net::LinkId link, size_t index);
  void ProveLink(net::LinkId link);
  // A small message whose way is free. False: it is not posted yet.
  bool SendAtOnce(net::FlowId flow, const void* data, uint64_t bytes);
  void Carried(net::LinkId link, const net::Chunk& chunk);
  bool PumpAll();
  bool PumpBulk(net::LinkId link, size_t index);
  void TellRates();
  void Trouble(net::LinkId link, plan::EvidenceCause cause);
  void Receive(net::Lane lane, std::span<const uint8_t> packet, bool* sound);

  Io* const io_;
  const int peer_;
  const uint64_t session_id_;
  const uint32_t tag_;
  net::SendSession session_;
  size_t remote_rails_ = 0;
  Greeting oob_greeting_;
  Control oob_;
  Nanos oob_since_ = 0;
  Nanos rates_told_ = 0;
  std::vector<LinkSockets> links_;
  PeerProbe probe_;
};

}  // namespace r2cc::sim

#endif  // R2CC_TESTS_SIM_SEND_END_H_
