// Net plugin table of version 10, exported as ncclNetPlugin_v10. NCCL 2.26 and 2.27. Adds a profiler callback, a traffic class, and a
// profiler handle per request.
#ifndef R2CC_NETPLUGIN_ABI_NET_V10_H_
#define R2CC_NETPLUGIN_ABI_NET_V10_H_

#include <cstddef>
#include <cstdint>

#include "netplugin/abi/nccl_types.h"
#include "netplugin/abi/net_v9.h"

namespace r2cc::abi {

struct NetTableV10 {
  const char* name;
  Result (*init)(Logger log, ProfilerCallback profiler);
  Result (*devices)(int* ndev);
  Result (*get_properties)(int dev, NetPropertiesV9* props);
  Result (*listen)(int dev, void* handle, void** listen_comm);
  Result (*connect)(int dev, NetCommConfig* config, void* handle, void** send_comm, NetDeviceHandle** send_dev_comm);
  Result (*accept)(void* listen_comm, void** recv_comm, NetDeviceHandle** recv_dev_comm);
  Result (*reg_mr)(void* comm, void* data, size_t size, int type, void** mhandle);
  Result (*reg_mr_dma_buf)(void* comm, void* data, size_t size, int type, uint64_t offset, int fd, void** mhandle);
  Result (*dereg_mr)(void* comm, void* mhandle);
  Result (*isend)(void* send_comm, void* data, size_t size, int tag, void* mhandle, void* phandle, void** request);
  Result (*irecv)(void* recv_comm, int n, void** data, size_t* sizes, int* tags, void** mhandles, void** phandles, void** request);
  Result (*iflush)(void* recv_comm, int n, void** data, int* sizes, void** mhandles, void** request);
  Result (*test)(void* request, int* done, int* sizes);
  Result (*close_send)(void* send_comm);
  Result (*close_recv)(void* recv_comm);
  Result (*close_listen)(void* listen_comm);
  Result (*get_device_mr)(void* comm, void* mhandle, void** device_mhandle);  // may be NULL
  Result (*irecv_consumed)(void* recv_comm, int n, void* request);            // may be NULL
  Result (*make_v_device)(int* dev, NetVDevicePropsV9* props);                // may be NULL
};
static_assert(sizeof(NetTableV10) == 20 * sizeof(void*));
static_assert(offsetof(NetTableV10, isend) == 10 * sizeof(void*) && offsetof(NetTableV10, make_v_device) == 19 * sizeof(void*));

}  // namespace r2cc::abi

#endif  // R2CC_NETPLUGIN_ABI_NET_V10_H_
