// CollNet plugin table of version 7, exported as ncclCollNetPlugin_v7. All members of a group make the same calls of iallreduce in the same
// order. Up to v8, NCCL limits a call to 512 MiB.
#ifndef R2CC_NETPLUGIN_ABI_COLLNET_V7_H_
#define R2CC_NETPLUGIN_ABI_COLLNET_V7_H_

#include <cstddef>
#include <cstdint>

#include "netplugin/abi/nccl_types.h"
#include "netplugin/abi/net_v7.h"

namespace r2cc::abi {

struct CollNetTableV7 {
  const char* name;
  Result (*init)(Logger log);
  Result (*devices)(int* ndev);
  Result (*get_properties)(int dev, NetPropertiesV7* props);
  Result (*listen)(int dev, void* handle, void** listen_comm);
  Result (*connect)(void** handles, int nranks, int rank, void* listen_comm, void** coll_comm);
  Result (*reduce_support)(DataType type, RedOp op, int* supported);
  Result (*reg_mr)(void* coll_comm, void* data, int size, int type, void** mhandle);
  Result (*reg_mr_dma_buf)(void* coll_comm, void* data, size_t size, int type, uint64_t offset, int fd, void** mhandle);  // may be NULL
  Result (*dereg_mr)(void* coll_comm, void* mhandle);
  Result (*iallreduce)(void* coll_comm, void* send_data, void* recv_data, int count, DataType type, RedOp op, void* send_mhandle,
                       void* recv_mhandle, void** request);
  Result (*iflush)(void* coll_comm, void* data, int size, void* mhandle, void** request);
  Result (*test)(void* request, int* done, int* size);
  Result (*close_coll)(void* coll_comm);
  Result (*close_listen)(void* listen_comm);
};
static_assert(sizeof(CollNetTableV7) == 15 * sizeof(void*));
static_assert(offsetof(CollNetTableV7, iallreduce) == 10 * sizeof(void*) && offsetof(CollNetTableV7, close_listen) == 14 * sizeof(void*));

}  // namespace r2cc::abi

#endif  // R2CC_NETPLUGIN_ABI_COLLNET_V7_H_
