// Net plugin table of version 12, exported as ncclNetPlugin_v12. NCCL 2.30. The functions are those of v11; only the properties and the
// virtual device grew.
#ifndef R2CC_NETPLUGIN_ABI_NET_V12_H_
#define R2CC_NETPLUGIN_ABI_NET_V12_H_

#include <cstddef>
#include <cstdint>

#include "netplugin/abi/nccl_types.h"

namespace r2cc::abi {

struct NetPropertiesV12 {
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
  NetVDevicePropsV12 v_props;
  size_t max_p2p_bytes;
  size_t max_coll_bytes;
  int max_multi_request_size;
  int16_t rail_id;
  int16_t plane_id;
};
static_assert(sizeof(NetPropertiesV12) == 128);
static_assert(offsetof(NetPropertiesV12, force_flush) == 32 && offsetof(NetPropertiesV12, speed_mbps) == 36);
static_assert(offsetof(NetPropertiesV12, v_props) == 64 && offsetof(NetPropertiesV12, max_p2p_bytes) == 104);
static_assert(offsetof(NetPropertiesV12, max_coll_bytes) == 112 && offsetof(NetPropertiesV12, max_multi_request_size) == 120);
static_assert(offsetof(NetPropertiesV12, rail_id) == 124 && offsetof(NetPropertiesV12, plane_id) == 126);

struct NetTableV12 {
  const char* name;
  Result (*init)(void** ctx, uint64_t comm_id, NetCommConfig* config, Logger log, ProfilerCallback profiler);
  Result (*devices)(int* ndev);
  Result (*get_properties)(int dev, NetPropertiesV12* props);
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
  Result (*make_v_device)(int* dev, NetVDevicePropsV12* props);               // may be NULL
  Result (*finalize)(void* ctx);
  Result (*set_net_attr)(void* ctx, NetAttrV11* attr);  // may be NULL
};
static_assert(sizeof(NetTableV12) == 22 * sizeof(void*));
static_assert(offsetof(NetTableV12, isend) == 10 * sizeof(void*) && offsetof(NetTableV12, set_net_attr) == 21 * sizeof(void*));

}  // namespace r2cc::abi

#endif  // R2CC_NETPLUGIN_ABI_NET_V12_H_
