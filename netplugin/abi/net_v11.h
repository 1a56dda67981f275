// Net plugin table of version 11, exported as ncclNetPlugin_v11. NCCL 2.28 and 2.29. Adds one context per communicator, and a finalize.
#ifndef R2CC_NETPLUGIN_ABI_NET_V11_H_
#define R2CC_NETPLUGIN_ABI_NET_V11_H_

#include <cstddef>
#include <cstdint>

#include "netplugin/abi/nccl_types.h"

namespace r2cc::abi {

struct NetPropertiesV11 {
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
  int max_multi_request_size;
};
static_assert(sizeof(NetPropertiesV11) == 112);
static_assert(offsetof(NetPropertiesV11, force_flush) == 32 && offsetof(NetPropertiesV11, speed_mbps) == 36);
static_assert(offsetof(NetPropertiesV11, net_device_version) == 60 && offsetof(NetPropertiesV11, v_props) == 64);
static_assert(offsetof(NetPropertiesV11, max_p2p_bytes) == 88 && offsetof(NetPropertiesV11, max_coll_bytes) == 96);
static_assert(offsetof(NetPropertiesV11, max_multi_request_size) == 104);

struct NetTableV11 {
  const char* name;
  Result (*init)(void** ctx, uint64_t comm_id, NetCommConfig* config, Logger log, ProfilerCallback profiler);
  Result (*devices)(int* ndev);
  Result (*get_properties)(int dev, NetPropertiesV11* props);
  Result (*listen)(void* ctx, int dev, void* handle, void** listen_comm);
  Result (*connect)(void* ctx, int dev, void* handle, void** send_comm, NetDeviceHandle** send_dev_comm);
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
  Result (*finalize)(void* ctx);
  Result (*set_net_attr)(void* ctx, NetAttrV11* attr);  // may be NULL
};
static_assert(sizeof(NetTableV11) == 22 * sizeof(void*));
static_assert(offsetof(NetTableV11, isend) == 10 * sizeof(void*) && offsetof(NetTableV11, set_net_attr) == 21 * sizeof(void*));

}  // namespace r2cc::abi

#endif  // R2CC_NETPLUGIN_ABI_NET_V11_H_
