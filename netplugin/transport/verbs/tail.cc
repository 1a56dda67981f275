#include "netplugin/transport/verbs/tail.h"

#include <algorithm>
#include <cstring>

#include "base/core/hash.h"

namespace r2cc::net::verbs {
namespace {

constexpr size_t kSummedBytes = kTailBytes - sizeof(uint32_t);

uint32_t SumOf(const std::byte* bytes, uint32_t ticket, uint32_t tag) {
  return Crc32c(&ticket, sizeof(ticket), Crc32c(bytes, kSummedBytes)) ^ tag;
}

}  // namespace

std::array<std::byte, kTailBytes> Encode(const Tail& tail, uint32_t ticket, uint32_t tag) {
  std::array<std::byte, kTailBytes> bytes;
  std::memcpy(bytes.data(), &tail.message_bytes, sizeof(tail.message_bytes));
  std::memcpy(bytes.data() + 8, &tail.chunk_bytes, sizeof(tail.chunk_bytes));
  const uint32_t sum = SumOf(bytes.data(), ticket, tag);
  std::memcpy(bytes.data() + kSummedBytes, &sum, sizeof(sum));
  return bytes;
}

bool Decode(std::span<const std::byte, kTailBytes> bytes, uint32_t ticket, uint32_t tag, Tail* tail) {
  uint32_t sum;
  std::memcpy(&sum, bytes.data() + kSummedBytes, sizeof(sum));
  if (sum != SumOf(bytes.data(), ticket, tag)) return false;
  std::memcpy(&tail->message_bytes, bytes.data(), sizeof(tail->message_bytes));
  std::memcpy(&tail->chunk_bytes, bytes.data() + 8, sizeof(tail->chunk_bytes));
  return tail->message_bytes <= kMessageBytesMax && tail->chunk_bytes > 0 && tail->chunk_bytes % kChunkAlignment == 0 &&
         (tail->message_bytes + tail->chunk_bytes - 1) / tail->chunk_bytes <= kChunksMax;
}

bool HeaderOf(const ChunkMark& mark, FlowId flow, MessageId message, const Tail& tail, Chunk* header) {
  const uint32_t count = ChunkCount(tail.message_bytes, tail.chunk_bytes);
  if (mark.chunk >= count || mark.last != (mark.chunk + 1 == count)) return false;
  *header = {.flow = flow, .message = message, .message_bytes = tail.message_bytes, .chunk_bytes = tail.chunk_bytes, .index = mark.chunk};
  header->bytes = ChunkLength(tail.message_bytes, tail.chunk_bytes, mark.chunk);
  return true;
}

bool HeaderOf(const ChunkMark& mark, FlowId flow, MessageId message, uint32_t bytes, Chunk* header) {
  if (mark.chunk != 0 || !mark.last) return false;
  const uint64_t rounded = (uint64_t{bytes} + kChunkAlignment - 1) / kChunkAlignment * kChunkAlignment;
  if (rounded > UINT32_MAX) return false;
  *header = {.flow = flow, .message = message, .message_bytes = bytes, .chunk_bytes = 0, .index = 0};
  header->chunk_bytes = std::max(static_cast<uint32_t>(rounded), kChunkAlignment);
  header->bytes = bytes;
  return true;
}

}  // namespace r2cc::net::verbs
