#include "tests/sim/sim_oob.h"

#include <utility>

namespace r2cc::sim {
namespace {

using net::ProbeResult;

// As TCP's.
constexpr Nanos kConnectLimit = 2 * kNanosPerSecond;

}  // namespace

void SimOob::EndGreeting() {
  if (greeting_ == nullptr) return;
  port_->ready.Unwatch(greeting_token_, &greeting_->socket());
  greeting_->socket().Reset();
  port_->io->network->timeline()->After(0, [old = std::shared_ptr<FrameStream>(std::move(greeting_))] {});
}

void SimOob::Close() {
  EndGreeting();
  channel_.Close(true);
}

void SimOob::Lost(ProbeResult result) {
  Close();
  owner_->OobLost(result);
}

void SimOob::Open(const net::Hello& hello) {
  Close();
  greeting_since_ = port_->io->now();
  ungreeted_reported_ = false;
  hello_ = net::Encode(hello);
  auto socket = port_->io->network->Connect({port_->io->host, kOobRail}, {peer_, kOobRail}, true);
  greeting_ = std::make_unique<FrameStream>(socket);
  greeting_token_ = port_->ready.Watch(socket, [this] { Greets(); });
}

void SimOob::Greets() {
  FrameStream& stream = *greeting_;
  if (stream.socket().broken() && stream.socket().Readable() == 0)
    return Lost(stream.socket().refused() ? ProbeResult::kRefused : ProbeResult::kSilent);
  if (!stream.socket().connected()) return;
  if (!hello_.empty()) stream.Send(std::exchange(hello_, {}));
  stream.Flush();
  net::Bytes packet;
  bool whole = false;
  net::HelloReply reply;
  if (stream.ReadOne(&packet, &whole) != FrameStream::State::kOpen || (whole && !net::Decode(packet, &reply)))
    return Lost(ProbeResult::kSilent);
  if (!whole) return;
  port_->ready.Unwatch(greeting_token_, &stream.socket());
  channel_.Open(std::move(greeting_));
  owner_->OobGreeted(reply);
}

void SimOob::Attach(std::unique_ptr<net::Connection> greeted, const net::HelloReply& reply) {
  Close();
  std::unique_ptr<FrameStream> stream = std::move(static_cast<SimConnection&>(*greeted).stream);
  stream->Send(net::Encode(reply));
  channel_.Open(std::move(stream));
}

void SimOob::Probe(Nanos last_received) {
  question_ = {port_->io->local_now(), last_received};
  port_->probes->Ask(address_, *question_);
}

void SimOob::Tick() {
  if (greeting_ != nullptr && greeting_->socket().connected()) {
    if (!std::exchange(ungreeted_reported_, true)) owner_->OobUngreeted();
  } else if (greeting_ != nullptr && port_->io->now() - greeting_since_ >= kConnectLimit) {
    Lost(ProbeResult::kSilent);
  }
  if (!question_.has_value()) return;
  const std::optional<ProbeResult> answer = port_->probes->AnswerTo(address_, *question_);
  if (!answer.has_value()) return;
  question_.reset();
  owner_->Probed(*answer);
}

}  // namespace r2cc::sim
