// ncclUniqueId, and the note that this library leaves in it: where the process that made the ID answers a roll call. NCCL puts the address
// of its own first meeting at the front and zeroes behind it; every rank gets all 128 bytes. Pure.
#ifndef R2CC_NCCL_UNIQUE_ID_H_
#define R2CC_NCCL_UNIQUE_ID_H_

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace r2cc::nccl {

struct UniqueId {
  std::byte bytes[128];
};

struct RollAddress {
  sockaddr_storage address{};  // of AF_INET or AF_INET6
  socklen_t bytes = 0;
  uint64_t nonce = 0;  // of the process
  uint64_t key = 0;    // of the ID
};

// The address at which the process that made the ID meets the other ranks, with port 0; nothing: this NCCL writes another ID.
std::optional<RollAddress> MeetingAddress(const UniqueId& id);
// False, and nothing is written: the place is not free.
bool WriteNote(const RollAddress& address, UniqueId* id);
// Nothing: the process that made the ID has not written one.
std::optional<RollAddress> ReadNote(const UniqueId& id);

}  // namespace r2cc::nccl

#endif  // R2CC_NCCL_UNIQUE_ID_H_
