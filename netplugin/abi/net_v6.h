// Net plugin table of version 6, exported as ncclNetPlugin_v6. Read by NCCL 2.19 to 2.30 and by RCCL where nothing newer is exported.
#ifndef R2CC_NETPLUGIN_ABI_NET_V6_H_
#define R2CC_NETPLUGIN_ABI_NET_V6_H_

#include <cstddef>
#include <cstdint>

#include "netplugin/abi/nccl_types.h"

namespace r2cc::abi {

struct NetPropertiesV6 {
  char* name;
  char* pci_path;
  uint64_t guid;
  int ptr_support;
  int speed_mbps;
  int port;
  float latency_us;
  int max_comms;
  int max_recvs;
};
static_assert(sizeof(NetPropertiesV6) == 48);
static_assert(offsetof(NetPropertiesV6, speed_mbps) == 28 && offsetof(NetPropertiesV6, max_recvs) == 44);

struct NetTableV6 {
  const char* name;
  Result (*init)(Logger log);
  Result (*devices)(int* ndev);
  Result (*get_properties)(int dev, NetPropertiesV6* props);
  Result (*listen)(int dev, void* handle, void** listen_comm);
  Result (*connect)(int dev, void* handle, void** send_comm);
  Result (*accept)(void* listen_comm, void** recv_comm);
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
};
static_assert(sizeof(NetTableV6) == 17 * sizeof(void*));
static_assert(offsetof(NetTableV6, isend) == 10 * sizeof(void*) && offsetof(NetTableV6, close_listen) == 16 * sizeof(void*));

}  // namespace r2cc::abi

#endif  // R2CC_NETPLUGIN_ABI_NET_V6_H_
