// A transport in which the sender places, with a tap on the seam between it and its peers: what they entrust to it, what it tells them, and
// the moments of its links' lives. It changes nothing.
#ifndef R2CC_TESTS_SIM_TAPPED_TRANSPORT_H_
#define R2CC_TESTS_SIM_TAPPED_TRANSPORT_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "netplugin/transport/links.h"
#include "tests/sim/io.h"

namespace r2cc::sim {

struct TransportTap {
  Io* io = nullptr;
  // The process at an address of the transport's.
  std::function<int(const net::Endpoint& endpoint)> host_of;
  // An acceptor's answer: what arrives there belongs to this incarnation.
  std::function<void(const Carrying& who, uint16_t rail, const net::Endpoint& endpoint)> answered;
  std::shared_ptr<void> keeps;  // what the transport stands on
};

class TappedTransport final : public net::Transport {
 public:
  TappedTransport(TransportTap tap, std::unique_ptr<net::Transport> of) : tap_(std::move(tap)), of_(std::move(of)) {}

  net::TransportKind kind() const override { return of_->kind(); }
  uint32_t flow_slots() const override { return of_->flow_slots(); }
  bool Listen(const net::Rail& rail, net::Endpoint* own, std::string* error) override { return of_->Listen(rail, own, error); }
  // A rail that refuses is the simulation's.
  bool Register(const net::Memory& memory, uint16_t rail, net::Endpoint* key, std::string* error) override;
  void Unregister(const net::Memory& memory, uint16_t rail) override { of_->Unregister(memory, rail); }
  std::unique_ptr<net::Port> NewPort(const net::SessionKey& key, const net::PeerState* state) override;
  void StartThreads(int processors) override { of_->StartThreads(processors); }
  void Tick(Nanos now) override { of_->Tick(now); }

 private:
  const TransportTap tap_;
  const std::unique_ptr<net::Transport> of_;
};

}  // namespace r2cc::sim

#endif  // R2CC_TESTS_SIM_TAPPED_TRANSPORT_H_
