// Encodes the tail record: what a receiver needs to know of a message beyond an immediate. It is written into the receiver's memory before
// the immediate comes. It is the same for all chunks of the message, so chunks on several links may write it in any order. 16 bytes,
// little-endian: {message bytes 8, chunk bytes 4, checksum 4}; the checksum is CRC-32C of the rest and of the ticket, exclusive-or the
// session's tag. Pure.
//
// It goes with each chunk of a message that has more than one. It goes with all chunks if packets of an immediate take another path through
// the fabric than those of plain writes (adaptive routing). Without it the only chunk is the message, and its completion has the length.
#ifndef R2CC_NETPLUGIN_TRANSPORT_VERBS_TAIL_H_
#define R2CC_NETPLUGIN_TRANSPORT_VERBS_TAIL_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "netplugin/flow/types.h"
#include "netplugin/transport/verbs/ticket.h"

namespace r2cc::net::verbs {

constexpr size_t kTailBytes = 16;

struct Tail {
  uint64_t message_bytes = 0;
  uint32_t chunk_bytes = 0;
  friend bool operator==(const Tail&, const Tail&) = default;
};

std::array<std::byte, kTailBytes> Encode(const Tail& tail, uint32_t ticket, uint32_t tag);
// False if the checksum is wrong, or no message has such a length or such chunks.
bool Decode(std::span<const std::byte, kTailBytes> bytes, uint32_t ticket, uint32_t tag, Tail* tail);

// The header of the chunk with this mark, in a message of `flow`, as its sender's ledger would make it. False: no message has such a chunk.
bool HeaderOf(const ChunkMark& mark, FlowId flow, MessageId message, const Tail& tail, Chunk* header);
// Without a tail: the chunk of `bytes` is the whole message.
bool HeaderOf(const ChunkMark& mark, FlowId flow, MessageId message, uint32_t bytes, Chunk* header);

}  // namespace r2cc::net::verbs

#endif  // R2CC_NETPLUGIN_TRANSPORT_VERBS_TAIL_H_
