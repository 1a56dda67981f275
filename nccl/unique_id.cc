#include "nccl/unique_id.h"

#include <netinet/in.h>

#include <algorithm>
#include <cstring>

namespace r2cc::nccl {
namespace {

// NCCL 2.18 to 2.30: a number of eight bytes, then the address.
constexpr size_t kMeetingAt = 8;
constexpr size_t kNoteAt = 64;
constexpr uint64_t kNoteMagic = 0x3143435252324352;

struct Note {
  uint64_t magic;
  uint64_t nonce;
  uint64_t key;
  uint16_t family;
  uint16_t port;   // in the network's byte order
  uint32_t scope;  // of IPv6
  std::byte address[16];
};
static_assert(kNoteAt + sizeof(Note) <= sizeof(UniqueId));

}  // namespace

std::optional<RollAddress> MeetingAddress(const UniqueId& id) {
  RollAddress found;
  sa_family_t family = 0;
  std::memcpy(&family, id.bytes + kMeetingAt, sizeof(family));
  if (family == AF_INET) {
    sockaddr_in address;
    std::memcpy(&address, id.bytes + kMeetingAt, sizeof(address));
    if (address.sin_port == 0 || address.sin_addr.s_addr == 0) return std::nullopt;
    address.sin_port = 0;
    std::memcpy(&found.address, &address, found.bytes = sizeof(address));
    return found;
  }
  if (family != AF_INET6) return std::nullopt;
  sockaddr_in6 address;
  std::memcpy(&address, id.bytes + kMeetingAt, sizeof(address));
  if (address.sin6_port == 0) return std::nullopt;
  address.sin6_port = 0;
  std::memcpy(&found.address, &address, found.bytes = sizeof(address));
  return found;
}

bool WriteNote(const RollAddress& address, UniqueId* id) {
  if (!std::all_of(id->bytes + kNoteAt, id->bytes + sizeof(UniqueId), [](std::byte byte) { return byte == std::byte{}; })) return false;
  Note note{.magic = kNoteMagic,
            .nonce = address.nonce,
            .key = address.key,
            .family = address.address.ss_family,
            .port = 0,
            .scope = 0,
            .address = {}};
  if (note.family == AF_INET) {
    sockaddr_in plain;
    std::memcpy(&plain, &address.address, sizeof(plain));
    note.port = plain.sin_port;
    std::memcpy(note.address, &plain.sin_addr, sizeof(plain.sin_addr));
  } else {
    sockaddr_in6 plain;
    std::memcpy(&plain, &address.address, sizeof(plain));
    note.port = plain.sin6_port;
    note.scope = plain.sin6_scope_id;
    std::memcpy(note.address, &plain.sin6_addr, sizeof(plain.sin6_addr));
  }
  std::memcpy(id->bytes + kNoteAt, &note, sizeof(note));
  return true;
}

std::optional<RollAddress> ReadNote(const UniqueId& id) {
  Note note;
  std::memcpy(&note, id.bytes + kNoteAt, sizeof(note));
  if (note.magic != kNoteMagic || note.port == 0) return std::nullopt;
  RollAddress found{.nonce = note.nonce, .key = note.key};
  if (note.family == AF_INET) {
    sockaddr_in plain{};
    plain.sin_family = AF_INET;
    plain.sin_port = note.port;
    std::memcpy(&plain.sin_addr, note.address, sizeof(plain.sin_addr));
    std::memcpy(&found.address, &plain, found.bytes = sizeof(plain));
  } else if (note.family == AF_INET6) {
    sockaddr_in6 plain{};
    plain.sin6_family = AF_INET6;
    plain.sin6_port = note.port;
    plain.sin6_scope_id = note.scope;
    std::memcpy(&plain.sin6_addr, note.address, sizeof(plain.sin6_addr));
    std::memcpy(&found.address, &plain, found.bytes = sizeof(plain));
  } else {
    return std::nullopt;
  }
  return found;
}

}  // namespace r2cc::nccl
