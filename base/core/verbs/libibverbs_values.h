// Converts values of libibverbs' header to values of the seam, and back. Only for libibverbs.cc.
#ifndef R2CC_BASE_CORE_VERBS_LIBIBVERBS_VALUES_H_
#define R2CC_BASE_CORE_VERBS_LIBIBVERBS_VALUES_H_

#include <infiniband/verbs.h>

#include <cstdint>

#include "base/core/verbs/verbs.h"

namespace r2cc::verbs {

// The library's calls have one byte for it, though a table may be longer.
inline constexpr uint32_t kGidIndexMax = 255;

int AccessFlags(uint32_t access);  // without relaxed ordering, which is another call's
PortState StateOf(ibv_port_state state);
LinkLayer LinkLayerOf(uint8_t layer);
uint32_t MtuBytes(ibv_mtu mtu);  // 0: unknown
ibv_mtu MtuOf(uint32_t bytes);   // 0: there is no such MTU
// From the bits of the InfiniBand specification, in the numbers of the kernel's `rate` in sysfs. 0: unknown.
double BitsPerSecond(uint8_t speed, uint8_t width);
Completion CompletionOf(const ibv_wc& wc);
// Without segments and successor.
ibv_send_wr WorkRequestOf(const SendRequest& request);
ibv_recv_wr WorkRequestOf(const ReceiveRequest& request);
QueuePairState StateOf(ibv_qp_state state);
// To modify a queue pair with. False: no queue pair can have such an MTU or GID index.
bool AttributesOf(const ReadyToReceive& ready, ibv_qp_attr* attributes);
ibv_qp_attr AttributesOf(const ReadyToSend& ready);

AsyncKind AsyncKindOf(ibv_event_type type);
// The meaning of an event's `element`. The library looks at the same when the event is acknowledged.
enum class Subject { kNone, kPort, kQueuePair, kCompletionQueue };
Subject SubjectOf(ibv_event_type type);

}  // namespace r2cc::verbs

#endif  // R2CC_BASE_CORE_VERBS_LIBIBVERBS_VALUES_H_
