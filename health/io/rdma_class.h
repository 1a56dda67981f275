// Marks the packets of RDMA probes as the site marks those of jobs. Otherwise probes would test another path through the fabric.
#ifndef R2CC_HEALTH_IO_RDMA_CLASS_H_
#define R2CC_HEALTH_IO_RDMA_CLASS_H_

#include <cstdint>

namespace r2cc::health {

struct RdmaClass {
  uint8_t traffic_class = 0;
  uint8_t service_level = 0;
  uint16_t pkey_index = 0;  // of the partition key table

  friend bool operator==(const RdmaClass&, const RdmaClass&) = default;
};

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_IO_RDMA_CLASS_H_
