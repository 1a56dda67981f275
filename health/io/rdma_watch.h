// The seam to the machine's RDMA devices. Real: verbs_rdma_watch.h; fake: fake_rdma_watch.h.
#ifndef R2CC_HEALTH_IO_RDMA_WATCH_H_
#define R2CC_HEALTH_IO_RDMA_WATCH_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/core/verbs/port_facts.h"
#include "base/core/verbs/verbs.h"

namespace r2cc::health {

// One port, and how it is.
struct RdmaPort {
  verbs::PortFacts facts;
  verbs::PortInfo info;
};

struct RdmaHandler {
  // Something happened just now: to a port, or to the whole device (port 0). How its ports are since then comes by on_ports.
  std::function<void(const std::string& device, uint8_t port, verbs::AsyncKind kind)> on_event;
  // How all ports of a device are: when it is found, after each event, and every few seconds. None: the device is gone.
  std::function<void(const std::string& device, const std::vector<RdmaPort>& ports)> on_ports;
};

class RdmaWatch {
 public:
  virtual ~RdmaWatch() = default;

  // Calls the handler on the executor's thread, never from within Start. Once. Executor thread.
  virtual void Start(RdmaHandler handler) = 0;
};

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_IO_RDMA_WATCH_H_
