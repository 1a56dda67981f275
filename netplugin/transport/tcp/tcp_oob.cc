#include "netplugin/transport/tcp/tcp_oob.h"

#include <cerrno>
#include <utility>

#include "netplugin/flow/tuning.h"
#include "netplugin/transport/tcp/tcp_connection.h"

namespace r2cc::net {
TcpOob::TcpOob(TcpPort* port, const OobAddress& peer, OobOwner* owner)
    : port_(port),
      owner_(owner),
      address_(peer),
      control_(
          port->poller(), port->key().tag,
          {[owner](const Frame& frame) { owner->OobFrameReceived(frame); }, [this](plan::EvidenceCause) { Lost(ProbeResult::kSilent); }}) {
  ParseAddress(peer.host, peer.port, &peer_);
}

void TcpOob::Open(const Hello& hello) {
  Close();
  connecting_since_ = port_->Now();
  ungreeted_reported_ = false;
  int failure = 0;
  UniqueFd fd = Connect(port_->oob_source(), peer_, SocketUse::kOob, &failure);
  if (!fd) port_->CannotConnect(failure);
  if (!fd) return owner_->OobLost(failure == ECONNREFUSED ? ProbeResult::kRefused : ProbeResult::kSilent);
  connector_ = std::make_unique<Connector>(port_->poller(), std::move(fd), Encode(hello),
                                           [this](Connector::Outcome outcome, const HelloReply& reply,
                                                  std::unique_ptr<PacketStream> stream) { Greeted(outcome, reply, std::move(stream)); });
}

void TcpOob::Greeted(Connector::Outcome outcome, const HelloReply& reply, std::unique_ptr<PacketStream> stream) {
  if (outcome != Connector::Outcome::kReplied)
    return Lost(outcome == Connector::Outcome::kRefused ? ProbeResult::kRefused : ProbeResult::kSilent);
  connector_.reset();
  control_.Open(std::move(stream));
  owner_->OobGreeted(reply);
}

void TcpOob::Attach(std::unique_ptr<Connection> greeted, const HelloReply& reply) {
  Close();
  std::unique_ptr<PacketStream> stream = AsTcp(*greeted).Take();
  Prepare(stream->fd(), SocketUse::kOob, "");
  // The answer is the first thing on the connection, before any frame.
  stream->Queue(Encode(reply));
  stream->Flush();
  control_.Open(std::move(stream));
}

void TcpOob::Lost(ProbeResult result) {
  Close();
  owner_->OobLost(result);
}

void TcpOob::Close() {
  control_.Close();
  connector_.reset();
}

void TcpOob::Probe(Nanos last_received) {
  if (peer_.length == 0) return;
  question_ = {port_->Now(), last_received};
  port_->probes()->Ask(address_, *question_);
}

void TcpOob::Tick() {
  if (connector_ != nullptr && connector_->connected()) {
    if (!std::exchange(ungreeted_reported_, true)) owner_->OobUngreeted();
  } else if (connector_ != nullptr && port_->Now() - connecting_since_ >= tuning::kConnectMost) {
    Lost(ProbeResult::kSilent);
  }
  if (!question_.has_value()) return;
  const std::optional<ProbeResult> answer = port_->probes()->AnswerTo(address_, *question_);
  if (!answer.has_value()) return;
  question_.reset();
  owner_->Probed(*answer);
}

}  // namespace r2cc::net
