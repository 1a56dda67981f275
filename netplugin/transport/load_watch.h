// Whether a peer moves so much that more threads at it are worth their processors. Pure.
#ifndef R2CC_NETPLUGIN_TRANSPORT_LOAD_WATCH_H_
#define R2CC_NETPLUGIN_TRANSPORT_LOAD_WATCH_H_

#include <cstdint>

#include "base/core/clock.h"

namespace r2cc::net {

class LoadWatch {
 public:
  explicit LoadWatch(uint64_t heavy_bytes_per_s) : heavy_bytes_per_s_(heavy_bytes_per_s) {}

  // A pause between two collectives does not end it.
  static constexpr Nanos kHeavyFor = 50 * kNanosPerMs;

  // What the peer has moved in all, every few milliseconds.
  void Tick(uint64_t bytes, Nanos now) {
    const Nanos elapsed = now - ticked_;
    if (elapsed <= 0) return;
    if (ticked_ != 0 && bytes - bytes_ >= heavy_bytes_per_s_ / 1000 * static_cast<uint64_t>(elapsed) / kNanosPerMs)
      heavy_until_ = now + kHeavyFor;
    ticked_ = now;
    bytes_ = bytes;
    heavy_ = now < heavy_until_;
  }
  bool heavy() const { return heavy_; }

 private:
  const uint64_t heavy_bytes_per_s_;
  uint64_t bytes_ = 0;
  Nanos ticked_ = 0;
  Nanos heavy_until_ = 0;
  bool heavy_ = false;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_LOAD_WATCH_H_
