// Defines the 128 bytes that NCCL carries from listen() to the peer's connect().
#ifndef R2CC_NETPLUGIN_TRANSPORT_HANDLE_H_
#define R2CC_NETPLUGIN_TRANSPORT_HANDLE_H_

#include <cstdint>
#include <cstring>

#include "base/core/hash.h"
#include "plan/page/text.h"

namespace r2cc::net {

struct Handle {
  uint64_t magic;
  uint32_t wire_least;
  uint32_t wire_newest;
  uint64_t process;
  uint64_t nonce;
  uint64_t listen_id;
  uint16_t oob_port;
  char oob_address[46];
  uint32_t checksum;  // over all before it
};
static_assert(sizeof(Handle) <= 128);

constexpr uint64_t kHandleMagic = 0x5232'4343'4841'4e44;  // "R2CCHAND"

inline uint32_t HandleChecksum(const Handle& handle) { return Crc32c(&handle, offsetof(Handle, checksum)); }

// False if the bytes are not a handle of this plugin: the peer runs another one, or NCCL_NET differs between ranks. If true, the handle's
// address is printable.
inline bool ReadHandle(const void* bytes, Handle* handle) {
  std::memcpy(handle, bytes, sizeof(*handle));
  return handle->magic == kHandleMagic && handle->checksum == HandleChecksum(*handle) && plan::SoundText(handle->oob_address);
}

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_HANDLE_H_
