// CollNet plugin table of version 8, exported as ncclCollNetPlugin_v8. Registration takes a size_t; AllGather and ReduceScatter are new.
// The array of all ranks' pieces has bytes_per_rank for each; the window is the part of it that this part receives or sends.
#ifndef R2CC_NETPLUGIN_ABI_COLLNET_V8_H_
#define R2CC_NETPLUGIN_ABI_COLLNET_V8_H_

#include <cstddef>
#include <cstdint>

#include "netplugin/abi/nccl_types.h"
#include "netplugin/abi/net_v8.h"

namespace r2cc::abi {

// ncclNetSGE_v8_t: one part of the gathered or scattered data. There is never more than one.
struct NetSgeV8 {
  void* mhandle;
  void* address;
  uint32_t size;
};
static_assert(sizeof(NetSgeV8) == 24 && offsetof(NetSgeV8, size) == 16);

struct CollNetTableV8 {
  const char* name;
  Result (*init)(Logger log);
  Result (*devices)(int* ndev);
  Result (*get_properties)(int dev, NetPropertiesV8* props);
  Result (*listen)(int dev, void* handle, void** listen_comm);
  Result (*connect)(void** handles, int nranks, int rank, void* listen_comm, void** coll_comm);
  Result (*reduce_support)(DataType type, RedOp op, int* supported);
  Result (*reg_mr)(void* coll_comm, void* data, size_t size, int type, void** mhandle);
  Result (*reg_mr_dma_buf)(void* coll_comm, void* data, size_t size, int type, uint64_t offset, int fd, void** mhandle);  // may be NULL
  Result (*dereg_mr)(void* coll_comm, void* mhandle);
  Result (*iallreduce)(void* coll_comm, void* send_data, void* recv_data, int count, DataType type, RedOp op, void* send_mhandle,
                       void* recv_mhandle, void** request);
  // May be NULL.
  Result (*iallgather)(void* coll_comm, void* send_data, int recv_parts, NetSgeV8* recv, size_t bytes_per_rank, size_t window_offset,
                       size_t window_bytes, void* send_mhandle, void** request);
  // May be NULL.
  Result (*ireducescatter)(void* coll_comm, int send_parts, NetSgeV8* send, void* recv_data, size_t bytes_per_rank, size_t window_offset,
                           size_t window_bytes, DataType type, RedOp op, void* recv_mhandle, void** request);
  Result (*iflush)(void* coll_comm, void* data, int size, void* mhandle, void** request);
  Result (*test)(void* request, int* done, int* size);
  Result (*close_coll)(void* coll_comm);
  Result (*close_listen)(void* listen_comm);
};
static_assert(sizeof(CollNetTableV8) == 17 * sizeof(void*));
static_assert(offsetof(CollNetTableV8, iallreduce) == 10 * sizeof(void*) && offsetof(CollNetTableV8, close_listen) == 16 * sizeof(void*));

}  // namespace r2cc::abi

#endif  // R2CC_NETPLUGIN_ABI_COLLNET_V8_H_
