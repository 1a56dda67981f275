// Net plugin table of version 7, exported as ncclNetPlugin_v7. NCCL 2.19, and RCCL if nothing newer is exported. Adds devices with GPU
// offload to connect and accept.
#ifndef R2CC_NETPLUGIN_ABI_NET_V7_H_
#define R2CC_NETPLUGIN_ABI_NET_V7_H_

#include <cstddef>
#include <cstdint>

#include "netplugin/abi/nccl_types.h"

namespace r2cc::abi {

struct NetPropertiesV7 {
  char* name;
  char* pci_path;
  uint64_t guid;
  int ptr_support;
  int speed_mbps;
  int port;
  float latency_us;
  int max_comms;
  int max_recvs;
  int net_device_type;
  int net_device_version;
};
static_assert(sizeof(NetPropertiesV7) == 56);
static_assert(offsetof(NetPropertiesV7, speed_mbps) == 28 && offsetof(NetPropertiesV7, net_device_version) == 52);

struct NetTableV7 {
  const char* name;
  Result (*init)(Logger log);
  Result (*devices)(int* ndev);
  Result (*get_properties)(int dev, NetPropertiesV7* props);
  Result (*listen)(int dev, void* handle, void** listen_comm);
  Result (*connect)(int dev, void* handle, void** send_comm, NetDeviceHandle** send_dev_comm);
  Result (*accept)(void* listen_comm, void** recv_comm, NetDeviceHandle** recv_dev_comm);
  Result (*reg_mr)(void* comm, void* data, int size, int type, void** mhandle);
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
static_assert(sizeof(NetTableV7) == 19 * sizeof(void*));
static_assert(offsetof(NetTableV7, isend) == 10 * sizeof(void*) && offsetof(NetTableV7, irecv_consumed) == 18 * sizeof(void*));

}  // namespace r2cc::abi

#endif  // R2CC_NETPLUGIN_ABI_NET_V7_H_
