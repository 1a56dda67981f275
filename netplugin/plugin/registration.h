// Registers memory for each version of the net and CollNet tables. The net table ignores the comm.
#ifndef R2CC_NETPLUGIN_PLUGIN_REGISTRATION_H_
#define R2CC_NETPLUGIN_PLUGIN_REGISTRATION_H_

#include <cstddef>
#include <cstdint>

#include "netplugin/abi/nccl_types.h"
#include "netplugin/plugin/calls.h"
#include "netplugin/plugin/coll_calls.h"

namespace r2cc::net {

// Turns a negative size or count into one that is refused.
inline size_t SizeOf(int size) { return size < 0 ? SIZE_MAX : static_cast<size_t>(size); }

inline abi::Result RegisterV7(void*, void* data, int size, int type, void** mhandle) {
  return CallRegister(data, SizeOf(size), type, mhandle);
}
inline abi::Result RegisterV8(void*, void* data, size_t size, int type, void** mhandle) { return CallRegister(data, size, type, mhandle); }
// Its type would describe the memory behind the descriptor.
inline abi::Result RegisterDmaBuf(void*, void* data, size_t size, int, uint64_t offset, int fd, void** mhandle) {
  return CallRegisterDmaBuf(data, size, offset, fd, mhandle);
}
inline abi::Result CollRegisterV7(void*, void* data, int size, int type, void** mhandle) {
  return CallCollRegister(data, SizeOf(size), type, mhandle);
}
inline abi::Result CollRegisterV8(void*, void* data, size_t size, int type, void** mhandle) {
  return CallCollRegister(data, size, type, mhandle);
}
inline abi::Result Deregister(void*, void* mhandle) { return CallDeregister(mhandle); }

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_PLUGIN_REGISTRATION_H_
