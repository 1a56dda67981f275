// Net plugin table of version 9, exported as ncclNetPlugin_v9. NCCL 2.24 and 2.25. Messages take a size_t; devices can be fused
// (makeVDevice).
#ifndef R2CC_NETPLUGIN_ABI_NET_V9_H_
#define R2CC_NETPLUGIN_ABI_NET_V9_H_

#include <cstddef>
#include <cstdint>

#include "netplugin/abi/nccl_types.h"

namespace r2cc::abi {

struct NetPropertiesV9 {
  char* name;
  char* pci_path;
  uint64_t guid;
  int ptr_support;
  int reg_is_global;
  int force_flush;
  int speed_mbps;
  int port;
  float latency_us;
  int max_comms;
  int max_recvs;
  int net_device_type;
  int net_device_version;
  NetVDevicePropsV9 v_props;
  size_t max_p2p_bytes;
  size_t max_coll_bytes;
};
static_assert(sizeof(NetPropertiesV9) == 104);
static_assert(offsetof(NetPropertiesV9, force_flush) == 32 && offsetof(NetPropertiesV9, speed_mbps) == 36);
static_assert(offsetof(NetPropertiesV9, net_device_version) == 60 && offsetof(NetPropertiesV9, v_props) == 64);
static_assert(offsetof(NetPropertiesV9, max_p2p_bytes) == 88 && offsetof(NetPropertiesV9, max_coll_bytes) == 96);

struct NetTableV9 {
  const char* name;
  Result (*init)(Logger log);
  Result (*devices)(int* ndev);
  Result (*get_properties)(int dev, NetPropertiesV9* props);
  Result (*listen)(int dev, void* handle, void** listen_comm);
  Result (*connect)(int dev, void* handle, void** send_comm, NetDeviceHandle** send_dev_comm);
  Result (*accept)(void* listen_comm, void** recv_comm, NetDeviceHandle** recv_dev_comm);
  Result (*reg_mr)(void* comm, void* data, size_t size, int type, void** mhandle);
  Result (*reg_mr_dma_buf)(void* comm, void* data, size_t size, int type, uint64_t offset, int fd, void** mhandle);
  Result (*dereg_mr)(void* comm, void* mhandle);
  Result (*isend)(void* send_comm, void* data, size_t size, int tag, void* mhandle, void** request);
  Result (*irecv)(void* recv_comm, int n, void** data, size_t* sizes, int* tags, void** mhandles, void** request);
  Result (*iflush)(void* recv_comm, int n, void** data, int* sizes, void** mhandles, void** request);
  Result (*test)(void* request, int* done, int* sizes);
  Result (*close_send)(void* send_comm);
  Result (*close_recv)(void* recv_comm);
  Result (*close_listen)(void* listen_comm);
  Result (*get_device_mr)(void* comm, void* mhandle, void** device_mhandle);  // may be NULL
  Result (*irecv_consumed)(void* recv_comm, int n, void* request);            // may be NULL
  Result (*make_v_device)(int* dev, NetVDevicePropsV9* props);                // may be NULL
};
static_assert(sizeof(NetTableV9) == 20 * sizeof(void*));
static_assert(offsetof(NetTableV9, isend) == 10 * sizeof(void*) && offsetof(NetTableV9, make_v_device) == 19 * sizeof(void*));

}  // namespace r2cc::abi

#endif  // R2CC_NETPLUGIN_ABI_NET_V9_H_
