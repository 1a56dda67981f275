// The receiver's end of a simulated process: the production RecvSession, and simulated sockets that carry out its actions. The
// counterpart of netplugin/transport/tcp's RecvPeer.
#ifndef R2CC_TESTS_SIM_RECV_END_H_
#define R2CC_TESTS_SIM_RECV_END_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "netplugin/link/recv_session.h"
#include "tests/sim/io.h"
#include "tests/sim/peer_probe.h"
#include "tests/sim/stream.h"

namespace r2cc::sim {

class RecvEnd {
 public:
  // `flow_opened` answers whether a listener takes the flow.
  using FlowOpened = std::function<bool(RecvEnd* end, net::FlowId flow, uint64_t listen_id)>;
  RecvEnd(Io* io, const net::Hello& hello, FlowOpened flow_opened);
  RecvEnd(const RecvEnd&) = delete;
  RecvEnd& operator=(const RecvEnd&) = delete;

  int peer() const { return peer_; }

  // ---- the job ----

  void Post(net::FlowId flow, void* data, uint64_t capacity_bytes);
  void Close(net::FlowId flow);
  const net::RecvSession& session() const { return session_; }

  // ---- the process ----

  void RailState(int rail, bool up) { session_.LocalRail(static_cast<uint16_t>(rail), up, io_->now()); }
  void ApplyVerdicts();
  void Tick() {
    probe_.Tick();
    session_.Tick(io_->now());
  }
  bool Settle();
  bool idle() const { return session_.idle(); }
  // Nothing is open or owed, and the peer is gone.
  bool over() const { return session_.idle() && !session_.any_lane(); }
  bool Flushed() const;
  void End();

  // ---- connections ----

  void AttachOob(std::shared_ptr<Socket> socket);
  // False: the socket is refused, for `reason`.
  bool AttachLink(const net::Hello& hello, std::shared_ptr<Socket> socket, std::string* reason);

 private:
  struct Control {
    std::unique_ptr<FrameStream> stream;
    Io::Token token = 0;
  };
  struct Bulk {
    std::unique_ptr<BulkIn> in;
    std::shared_ptr<Socket> socket;
    Io::Token token = 0;
    bool more = false;
  };
  struct LinkSockets {
    net::Incarnation incarnation = 0;
    Control control;
    std::vector<Bulk> bulk;
    int proofs = 0;
    bool proved = true;
  };

  void Execute(const net::Action& action);
  void SendFrame(net::Lane lane, const net::Frame& frame);
  void CloseOob();
  void OobDown();
  void OobSpeaks();
  void ControlSpeaks(net::LinkId link);
  void ReadBulk(net::LinkId link, size_t index);
  void CloseLink(net::LinkId link);
  void Trouble(net::LinkId link, plan::EvidenceCause cause);
  Carrying Who(net::LinkId link) const { return {io_->host, peer_, link, links_[link].incarnation}; }

  Io* const io_;
  const int peer_;
  const uint64_t session_id_;
  const uint32_t tag_;
  const int remote_rails_;
  const FlowOpened flow_opened_;
  net::RecvSession session_;
  Control oob_;
  std::vector<LinkSockets> links_;
  PeerProbe probe_;
};

}  // namespace r2cc::sim

#endif  // R2CC_TESTS_SIM_RECV_END_H_
