// An RdmaWatch whose devices are the test. One thread.
#ifndef R2CC_HEALTH_IO_FAKE_RDMA_WATCH_H_
#define R2CC_HEALTH_IO_FAKE_RDMA_WATCH_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "health/io/rdma_watch.h"

namespace r2cc::health {

class FakeRdmaWatch final : public RdmaWatch {
 public:
  void Start(RdmaHandler handler) override { handler_ = std::move(handler); }

  void Event(const std::string& device, uint8_t port, verbs::AsyncKind kind) { handler_.on_event(device, port, kind); }
  void Ports(const std::string& device, const std::vector<RdmaPort>& ports) { handler_.on_ports(device, ports); }
  // A device with one port, which was made on `interface`.
  void Port(const std::string& device, const std::string& interface, bool active, double bits_per_second = 100e9) {
    RdmaPort port;
    port.facts = {.device = device, .port = 1, .pci = "", .interface = interface, .interfaces = {}};
    port.info.state = active ? verbs::PortState::kActive : verbs::PortState::kDown;
    port.info.bits_per_second = bits_per_second;
    Ports(device, {port});
  }

 private:
  RdmaHandler handler_;
};

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_IO_FAKE_RDMA_WATCH_H_
