// The out-of-band connection of a simulated peer, and the probe of its address.
#ifndef R2CC_TESTS_SIM_SIM_OOB_H_
#define R2CC_TESTS_SIM_SIM_OOB_H_

#include <memory>
#include <optional>

#include "netplugin/transport/probes.h"
#include "tests/sim/sim_transport.h"

namespace r2cc::sim {

class SimOob final : public net::Oob {
 public:
  SimOob(SimPort* port, const net::OobAddress& peer, net::OobOwner* owner)
      : port_(port),
        address_(peer),
        peer_(HostOf(peer.host)),
        owner_(owner),
        channel_(port, {[owner](const net::Frame& frame) { owner->OobFrameReceived(frame); },
                        [this](plan::EvidenceCause) { Lost(net::ProbeResult::kSilent); }}) {}

  void Open(const net::Hello& hello) override;
  void Attach(std::unique_ptr<net::Connection> greeted, const net::HelloReply& reply) override;
  void Close() override;
  net::ControlChannel* control() override { return &channel_; }
  void Probe(Nanos last_received) override;
  void Tick() override;

 private:
  void Greets();
  void Lost(net::ProbeResult result);
  void EndGreeting();

  SimPort* const port_;
  const net::OobAddress address_;
  const int peer_;
  net::OobOwner* const owner_;
  SimChannel channel_;
  std::unique_ptr<FrameStream> greeting_;
  ReadySet::Token greeting_token_ = 0;
  net::Bytes hello_;  // still to be said
  Nanos greeting_since_ = 0;
  bool ungreeted_reported_ = false;
  std::optional<net::Probes::Question> question_;  // has no answer yet
};

}  // namespace r2cc::sim

#endif  // R2CC_TESTS_SIM_SIM_OOB_H_
