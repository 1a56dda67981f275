// Whether what a peer moves is bulk, so that more threads at it are worth it: large messages are a matter of copying, small ones of who
// wakes up for them. Pure.
#ifndef R2CC_NETPLUGIN_FLOW_BULK_RUN_H_
#define R2CC_NETPLUGIN_FLOW_BULK_RUN_H_

#include <cstdint>

#include "netplugin/flow/types.h"

namespace r2cc::net {

class BulkRun {
 public:
  // It is after so many bytes of large messages; 0: always.
  explicit BulkRun(uint64_t after_bytes) : after_bytes_(after_bytes) {}

  // So many small messages one after another end it. A few, such as a job's flags, do not.
  static constexpr int kSmallMost = 4;

  // A chunk moves, either way.
  void Count(const Chunk& chunk) {
    if (chunk.message_bytes > kEagerBytesMax) {
      small_ = 0;
      bytes_ += chunk.bytes;
    } else if (++small_ >= kSmallMost) {
      bytes_ = 0;
    }
  }
  bool is_bulk() const { return bytes_ >= after_bytes_; }
  // Large messages are about.
  bool has_large() const { return bytes_ > 0; }

 private:
  const uint64_t after_bytes_;
  uint64_t bytes_ = 0;
  int small_ = 0;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_FLOW_BULK_RUN_H_
