// Encodes a chunk's identity in the 32 bits of an immediate: ticket 18, chunk 13, last 1. Pure.
//
// A ticket names a granted message among all that a process may have granted to a peer: the flow's low 12 bits and the message's low 6. So
// it need not be sent: both ends compute it. A ticket is free again when its message is placed, for three reasons: a flow has at most
// kMessagesPerFlow messages posted; each chunk belongs to one incarnation until that was fenced; and a completion of an ended incarnation
// is dropped before its immediate is read. Two open flows may not share their low 12 bits: the sender's process assigns no two such
// numbers, and the receiver's opens no such flow (Transport::flow_slots()).
#ifndef R2CC_NETPLUGIN_TRANSPORT_VERBS_TICKET_H_
#define R2CC_NETPLUGIN_TRANSPORT_VERBS_TICKET_H_

#include <cstdint>

#include "netplugin/flow/types.h"

namespace r2cc::net::verbs {

constexpr uint32_t kFlowSlots = 1u << 12;
constexpr uint32_t kMessagesPerFlow = 1u << 6;
constexpr uint32_t kTickets = kFlowSlots * kMessagesPerFlow;
static_assert(kTickets == 1u << 18);
static_assert(kChunksMax == 1u << 13);

constexpr uint32_t FlowSlot(FlowId flow) { return flow % kFlowSlots; }
constexpr uint32_t TicketOf(FlowId flow, MessageId message) {
  return FlowSlot(flow) * kMessagesPerFlow + static_cast<uint32_t>(message % kMessagesPerFlow);
}
constexpr uint32_t FlowSlotOf(uint32_t ticket) { return ticket / kMessagesPerFlow; }
// The message that the ticket names, in a flow in which all below `placed_through` are placed.
constexpr MessageId MessageOf(uint32_t ticket, MessageId placed_through) {
  const uint64_t ahead = (ticket % kMessagesPerFlow - placed_through) % kMessagesPerFlow;
  return placed_through + ahead;
}

struct ChunkMark {
  uint32_t ticket = 0;
  uint32_t chunk = 0;  // index in the message
  bool last = false;   // it is the message's last
  friend bool operator==(const ChunkMark&, const ChunkMark&) = default;
};
// REQUIRES: ticket and chunk within their bits. Any 32 bits are a valid mark.
constexpr uint32_t ImmediateOf(const ChunkMark& mark) { return mark.ticket << 14 | mark.chunk << 1 | (mark.last ? 1u : 0u); }
constexpr ChunkMark MarkOf(uint32_t immediate) { return {immediate >> 14, immediate >> 1 & (kChunksMax - 1), (immediate & 1) != 0}; }

}  // namespace r2cc::net::verbs

#endif  // R2CC_NETPLUGIN_TRANSPORT_VERBS_TICKET_H_
