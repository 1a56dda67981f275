// The seam to an InfiniBand fabric's management datagrams (MADs). Real: umad_fabric.h; fake: fake_mad_fabric.h.
#ifndef R2CC_HEALTH_IO_MAD_FABRIC_H_
#define R2CC_HEALTH_IO_MAD_FABRIC_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace r2cc::health {

// To or from a QP 1 of the same subnet.
struct FabricAddress {
  uint16_t lid = 0;
  uint8_t service_level = 0;

  friend bool operator==(const FabricAddress&, const FabricAddress&) = default;
};

struct FabricHandler {
  // A MAD of the class of the subnet administrator, from an unauthenticated sender: reports, and answers to requests.
  std::function<void(const std::string& mad, const FabricAddress& from)> on_mad;
  // A request had no answer.
  std::function<void()> on_timeout;
  // The port's device is gone, or cannot be read any more. The last call.
  std::function<void(const absl::Status&)> on_lost;
};

// One port, open for MADs. Closed by its destructor, after which no handler is called. Executor's thread.
class FabricPort {
 public:
  virtual ~FabricPort() = default;

  // A request that is repeated a few times until it has an answer; then on_mad or on_timeout.
  virtual absl::Status Ask(const FabricAddress& to, std::string_view mad) = 0;
  // An answer of ours.
  virtual absl::Status Answer(const FabricAddress& to, std::string_view mad) = 0;
};

class MadFabric {
 public:
  virtual ~MadFabric() = default;

  // The handler is called on the executor's thread, never from within Open, Ask or Answer, and does not destroy the port. NOT_FOUND:
  // this machine cannot do it (no such port, no library, not allowed); the message states what is missing.
  virtual absl::StatusOr<std::unique_ptr<FabricPort>> Open(const std::string& device, uint32_t port, FabricHandler handler) = 0;
};

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_IO_MAD_FABRIC_H_
