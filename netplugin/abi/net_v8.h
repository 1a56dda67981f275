// Net plugin table of version 8, exported as ncclNetPlugin_v8. NCCL 2.20 to 2.23. Registration takes a size_t.
#ifndef R2CC_NETPLUGIN_ABI_NET_V8_H_
#define R2CC_NETPLUGIN_ABI_NET_V8_H_

#include <cstddef>
#include <cstdint>

#include "netplugin/abi/nccl_types.h"

namespace r2cc::abi {

struct NetPropertiesV8 {
  char* name;
  char* pci_path;
  uint64_t guid;
  int ptr_support;
  int reg_is_global;
  int speed_mbps;
  int port;
  float latency_us;
  int max_comms;
  int max_recvs;
  int net_device_type;
  int net_device_version;
};
static_assert(sizeof(NetPropertiesV8) == 64);
static_assert(offsetof(NetPropertiesV8, reg_is_global) == 28 && offsetof(NetPropertiesV8, speed_mbps) == 32);
static_assert(offsetof(NetPropertiesV8, latency_us) == 40 && offsetof(NetPropertiesV8, net_device_version) == 56);

struct NetTableV8 {
  const char* name;
  Result (*init)(Logger log);
  Result (*devices)(int* ndev);
  Result (*get_properties)(int dev, NetPropertiesV8* props);
  Result (*listen)(int dev, void* handle, void** listen_comm);
  Result (*connect)(int dev, void* handle, void** send_comm, NetDeviceHandle** send_dev_comm);
  Result (*accept)(void* listen_comm, void** recv_comm, NetDeviceHandle** recv_dev_comm);
  Result (*reg_mr)(void* comm, void* data, size_t size, int type, void** mhandle);
  Result (*reg_mr_dma_buf)(void* comm, void* data, size_t size, int type, uint64_t offset, int fd, void** mhandle);
  Result (*dereg_mr)(void* comm, void* mhandle);
  Result (*isend)(void* send_comm, void* data, int size, int tag, void* mhandle, void** request);
  Result (*irecv)(void* recv_comm, int n, void** data, int* sizes, int* tags, void** mhandles, void** request);
  Result (*iflush)(void* recv_comm, int n, void** data, int* sizes, void** mhandles, void** request);
  Result (*test)(void* request, int* done, int* sizes);
  Result (*close_send)(void* send_comm);
  Result (*close_recv)(void* recv_comm);
  Result (*close_listen)(void* listen_comm);
  Result (*get_device_mr)(void* comm, void* mhandle, void** device_mhandle);  // may be NULL
  Result (*irecv_consumed)(void* recv_comm, int n, void* request);            // may be NULL
};
static_assert(sizeof(NetTableV8) == 19 * sizeof(void*));
static_assert(offsetof(NetTableV8, isend) == 10 * sizeof(void*) && offsetof(NetTableV8, irecv_consumed) == 18 * sizeof(void*));

}  // namespace r2cc::abi

#endif  // R2CC_NETPLUGIN_ABI_NET_V8_H_
