// The Datagrams over UDP, in the network namespace of the thread that calls Open.
#ifndef R2CC_HEALTH_IO_UDP_DATAGRAM_H_
#define R2CC_HEALTH_IO_UDP_DATAGRAM_H_

#include <cstdint>
#include <memory>

#include "base/event_loop.h"
#include "health/io/datagram.h"

namespace r2cc::health {

// When a datagram arrived by CLOCK_MONOTONIC, from the kernel's stamp, which is CLOCK_REALTIME's: as long before `now_monotonic` as the
// stamp is before `now_realtime`. A stamp that lies ahead, or more than a minute back, shows that the clock was set in between: then now.
Nanos ArrivalTime(int64_t stamp_realtime_ns, int64_t now_realtime_ns, Nanos now_monotonic);

// Datagrams of one socket that are read in a second, and at once. A daemon of 64 peers gets some hundred. Faster datagrams wait in the
// socket's buffer, and what finds that full counts as dropped by the kernel.
constexpr int kDatagramsPerSecond = 4000;
constexpr int kDatagramsBurst = 1000;

class UdpDatagrams final : public Datagrams {
 public:
  // `loop` outlives this and the sockets.
  explicit UdpDatagrams(EventLoop* loop) : loop_(loop) {}

  absl::StatusOr<std::unique_ptr<RailSocket>> Open(const RailBinding& binding, DatagramHandler handler) override;

 private:
  EventLoop* const loop_;
};

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_IO_UDP_DATAGRAM_H_
