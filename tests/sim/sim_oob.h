// The out-of-band connection of a simulated peer, and the probe of its address.
#ifndef R2CC_TESTS_SIM_SIM_OOB_H_
#define R2CC_TESTS_SIM_SIM_OOB_H_

#include <memory>

#include "tests/sim/sim_transport.h"

namespace r2cc::sim {

class SimOob final : public net::Oob {
 public:
  SimOob(SimPort* port, const net::OobAddress& peer, net::OobOwner* owner)
      : port_(port),
        peer_(HostOf(peer.host)),
        owner_(owner),
        channel_(port, {[owner](const net::Frame& frame) { owner->OobHeard(frame); },
                        [this](plan::EvidenceCause) { Lost(net::Reach::kSilent); }}) {}
  ~SimOob() override { StopProbe(); }

  void Open(const net::Hello& hello) override;
  void Attach(std::unique_ptr<net::Connection> greeted, const net::HelloReply& reply) override;
  void Close() override;
  net::ControlChannel* control() override { return &channel_; }
  void Probe() override;
  void Tick() override;

 private:
  void Greets();
  void Lost(net::Reach reach);
  void EndGreeting();
  void StopProbe();

  SimPort* const port_;
  const int peer_;
  net::OobOwner* const owner_;
  SimChannel channel_;
  std::unique_ptr<FrameStream> greeting_;
  ReadySet::Token greeting_token_ = 0;
  net::Bytes hello_;  // still to be said
  Nanos greeting_since_ = 0;
  std::shared_ptr<Socket> probe_;
  ReadySet::Token probe_token_ = 0;
  Nanos probe_since_ = 0;
};

}  // namespace r2cc::sim

#endif  // R2CC_TESTS_SIM_SIM_OOB_H_
