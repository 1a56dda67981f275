// How long to wait before the next try to connect. Pure.
#ifndef R2CC_NETPLUGIN_LINK_RETRY_WAIT_H_
#define R2CC_NETPLUGIN_LINK_RETRY_WAIT_H_

#include <cstdint>

#include "base/core/clock.h"

namespace r2cc::net {

// The back-off and up to a quarter of it more, by session, link and try: connections that failed together do not come again together. A
// listener that was overrun by the peers of a whole job once would be overrun by each of their tries.
constexpr Nanos RetryWait(Nanos back_off, uint64_t session, uint32_t link, uint32_t tries) {
  // splitmix64: neighbouring tries have nothing in common.
  uint64_t mixed = session ^ (uint64_t{link} << 32 | tries);
  mixed += 0x9e3779b97f4a7c15;
  mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
  mixed ^= mixed >> 31;
  return back_off + static_cast<Nanos>(mixed % static_cast<uint64_t>(back_off / 4 + 1));
}

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_LINK_RETRY_WAIT_H_
