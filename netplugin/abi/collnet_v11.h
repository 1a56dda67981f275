// CollNet plugin table of version 11, exported as ncclCollNetPlugin_v11. Adds one context per communicator, and a finalize.
#ifndef R2CC_NETPLUGIN_ABI_COLLNET_V11_H_
#define R2CC_NETPLUGIN_ABI_COLLNET_V11_H_

#include <cstddef>
#include <cstdint>

#include "netplugin/abi/collnet_v9.h"
#include "netplugin/abi/nccl_types.h"
#include "netplugin/abi/net_v11.h"

namespace r2cc::abi {

struct CollNetTableV11 {
  const char* name;
  Result (*init)(void** ctx, uint64_t comm_id, Logger log);
  Result (*devices)(int* ndev);
  Result (*get_properties)(int dev, NetPropertiesV11* props);
  Result (*listen)(void* ctx, int dev, void* handle, void** listen_comm);
  Result (*connect)(void** handles, int nranks, int rank, void* listen_comm, void** coll_comm);
  Result (*reduce_support)(DataType type, RedOp op, int* supported);
  Result (*reg_mr)(void* coll_comm, void* data, size_t size, int type, void** mhandle);
  Result (*reg_mr_dma_buf)(void* coll_comm, void* data, size_t size, int type, uint64_t offset, int fd, void** mhandle);  // may be NULL
  Result (*dereg_mr)(void* coll_comm, void* mhandle);
  Result (*iallreduce)(void* coll_comm, void* send_data, void* recv_data, size_t count, DataType type, RedOp op, void* send_mhandle,
                       void* recv_mhandle, void** request);
  // May be NULL.
  Result (*iallgather)(void* coll_comm, void* send_data, int recv_parts, NetSgeV9* recv, size_t bytes_per_rank, size_t window_offset,
                       size_t window_bytes, void* send_mhandle, void** request);
  // May be NULL.
  Result (*ireducescatter)(void* coll_comm, int send_parts, NetSgeV9* send, void* recv_data, size_t bytes_per_rank, size_t window_offset,
                           size_t window_bytes, DataType type, RedOp op, void* recv_mhandle, void** request);
  Result (*iflush)(void* coll_comm, void* data, int size, void* mhandle, void** request);
  Result (*test)(void* request, int* done, int* size);
  Result (*close_coll)(void* coll_comm);
  Result (*close_listen)(void* listen_comm);
  Result (*make_v_device)(int* dev, NetVDevicePropsV9* props);  // may be NULL
  Result (*finalize)(void* ctx);
};
static_assert(sizeof(CollNetTableV11) == 19 * sizeof(void*));
static_assert(offsetof(CollNetTableV11, iallreduce) == 10 * sizeof(void*) && offsetof(CollNetTableV11, finalize) == 18 * sizeof(void*));

}  // namespace r2cc::abi

#endif  // R2CC_NETPLUGIN_ABI_COLLNET_V11_H_
