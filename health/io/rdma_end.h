// One end of a queue pair that probes the way between two NICs: what the daemon at the other end has to know of it. Opaque bytes to
// everybody between the two.
#ifndef R2CC_HEALTH_IO_RDMA_END_H_
#define R2CC_HEALTH_IO_RDMA_END_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/core/verbs/verbs.h"

namespace r2cc::health {

struct RdmaEnd {
  uint32_t number = 0;     // of the queue pair; 24 bits
  uint32_t psn = 0;        // with which it begins to send; 24 bits
  uint32_t meets = 0;      // the number of the other end that it is connected to; 0: none yet
  uint16_t lid = 0;        // InfiniBand
  uint32_t mtu_bytes = 0;  // of its port
  verbs::Gid gid{};

  friend bool operator==(const RdmaEnd&, const RdmaEnd&) = default;
};

std::string EncodeRdmaEnd(const RdmaEnd& end);
// Nothing: it is of a format that is not known, or has a value that no port has.
std::optional<RdmaEnd> DecodeRdmaEnd(std::string_view bytes);

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_IO_RDMA_END_H_
